"""The HTTP embedder against a real server on this machine: good answers, and every bad one."""

from __future__ import annotations

import json
import math
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from pillion.embedders import openai
from pillion.embedders.errors import (
    EmbedderError,
    EmbedderInputRejected,
    EmbedderMisconfigured,
    EmbedderUnavailable,
)
from pillion.embedders.http import retry_after_ms

SECRET = "sk-very-secret"  # noqa: S105 - not one


def good(request: dict, dimension: int = 3) -> dict:
    """What the API promises, in another order than asked."""
    items = [
        {"object": "embedding", "index": i, "embedding": [float(len(text)), 1.0, 2.0][:dimension]}
        for i, text in enumerate(request["input"])
    ]
    return {"object": "list", "data": items[::-1], "model": request["model"]}


class Server:
    """Answers with the scripted replies in turn, then with good ones; keeps what it was sent.

    A reply is a function of the request that gives (status, headers, body).
    """

    def __init__(self) -> None:
        self.script: list = []
        self.requests: list[tuple[dict[str, str], dict]] = []
        self.hold = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((dict(self.headers), body))
                reply = outer.script.pop(0) if outer.script else lambda r: (200, {}, good(r))
                answer = reply(body)
                if answer is None:  # keep the client waiting
                    outer.hold.wait(10)
                    return
                status, headers, content = answer
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(raw)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST  # noqa: N815 - the name that the base class calls

            def log_message(self, *args) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.hold.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


@pytest.fixture
def make(server: Server, monkeypatch: pytest.MonkeyPatch):
    """An embedder of that server, with the waits that it would have slept."""
    monkeypatch.setenv("no_proxy", "*")

    def build(**options) -> tuple[openai.OpenAIEmbedder, list[float]]:
        waits: list[float] = []
        merged = {"base_url": server.url, "model": "m", "dimension": 3, **options}
        parsed = openai.parse_options(openai.Options, merged, embedder="openai")
        return openai.OpenAIEmbedder(parsed, sleep=waits.append, draw=lambda: 0.5), waits

    return build


def status(code: int, headers: dict[str, str] | None = None, body: object = b""):
    return lambda _request: (code, headers or {}, body)


def test_vectors_come_in_the_order_of_the_texts(make, server: Server) -> None:
    embedder, waits = make()
    vectors = embedder.embed_passages(["a", "bb"])
    expected = np.array([[1, 1, 2], [2, 1, 2]]) / np.array([[math.sqrt(6)], [3]])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert vectors.dtype == np.float32
    assert waits == []
    assert server.requests[0][1] == {"model": "m", "input": ["a", "bb"], "encoding_format": "float"}


def test_prefixes_batches_and_shortening(make, server: Server) -> None:
    embedder, _ = make(batch_max=2, query_prefix="query: ", send_dimension=True)
    assert embedder.embed_queries(["1", "2", "3"]).shape == (3, 3)
    assert [request["input"] for _, request in server.requests] == [
        ["query: 1", "query: 2"],
        ["query: 3"],
    ]
    assert server.requests[0][1]["dimensions"] == 3
    assert embedder.embed_queries([]).shape == (0, 3)
    assert len(server.requests) == 2


def test_any_text_can_be_sent(make) -> None:
    assert make()[0].embed_passages(["\ud800 \x00 🎉"]).shape == (1, 3)


def test_the_key_is_sent_and_never_told(make, server: Server, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    server.script = [status(401, body={"error": {"code": "invalid_api_key", "message": SECRET}})]
    embedder, _ = make(api_key_env="MY_KEY")
    with pytest.raises(EmbedderMisconfigured, match=r"HTTP 401 \(invalid_api_key\)") as caught:
        embedder.embed_queries(["my private words"])
    assert server.requests[0][0]["Authorization"] == f"Bearer {SECRET}"
    told = f"{caught.value!r} {caught.value.__cause__!r} {embedder!r} {vars(embedder)!r}"
    assert SECRET not in told
    assert "private" not in told

    file = tmp_path / "key"
    file.write_text("first\n")
    embedder, _ = make(api_key_file=file)
    embedder.embed_queries(["a"])
    file.write_text("second\n")  # rotated
    embedder.embed_queries(["a"])
    assert [r[0]["Authorization"] for r in server.requests[1:]] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("key", [None, "", "  ", "a\nb", "schlüssel"])
def test_an_unusable_key_is_found_at_the_start(make, monkeypatch, key: str | None) -> None:
    if key is not None:
        monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(EmbedderMisconfigured, match="MY_KEY"):
        make(api_key_env="MY_KEY")
    with pytest.raises(EmbedderMisconfigured, match="No such file"):
        make(api_key_file="/nowhere/at/all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "file:///etc/passwd"}, "http"),
        ({"base_url": "https://user:pw@host/v1"}, "without credentials"),
        ({"base_url": "http://example.org/v1", "api_key_env": "K"}, "unencrypted"),
        ({"api_key_env": "K", "api_key_file": "k"}, "not both"),
        ({"dimension": 0}, "dimension"),
        ({"model": ""}, "model"),
    ],
)
def test_refused_options(make, options, message: str) -> None:
    with pytest.raises(EmbedderMisconfigured, match=message):
        make(**options)


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_passing_failure_is_tried_again(make, server: Server, code: int) -> None:
    server.script = [status(code), status(code)]
    embedder, waits = make(backoff_ms=100)
    assert embedder.embed_queries(["a"]).shape == (1, 3)
    assert waits == [0.05, 0.1]  # half of 100 ms, half of 200 ms
    assert len(server.requests) == 3


def test_retries_end(make, server: Server) -> None:
    server.script = [status(503)] * 10
    embedder, waits = make(attempts_max=3)
    with pytest.raises(EmbedderUnavailable, match="503"):
        embedder.embed_queries(["a"])
    assert len(server.requests) == 3
    assert len(waits) == 2


def test_retry_after_is_honoured_as_a_least_wait(make, server: Server) -> None:
    server.script = [status(429, {"Retry-After": "7"})]
    embedder, waits = make(backoff_ms=100)
    embedder.embed_queries(["a"])
    assert waits == [7.0]


def test_a_long_retry_after_goes_to_the_caller(make, server: Server) -> None:
    server.script = [status(429, {"Retry-After": "3600"})]
    embedder, waits = make()
    with pytest.raises(EmbedderUnavailable) as caught:
        embedder.embed_queries(["a"])
    assert caught.value.retry_after_ms == 3_600_000
    assert waits == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("soon", None),
        ("-1", None),
        ("0", 0),
        (" 2 ", 2000),
        ("9" * 30, 999_999_999_000),
    ],
)
def test_retry_after_values(value: str | None, expected: int | None) -> None:
    assert retry_after_ms(value, now_s=1000.0) == expected


def test_retry_after_as_a_date() -> None:
    assert retry_after_ms(formatdate(1030, usegmt=True), now_s=1000.0) == 30_000
    assert retry_after_ms(formatdate(900, usegmt=True), now_s=1000.0) == 0


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, EmbedderMisconfigured),
        (403, EmbedderMisconfigured),
        (404, EmbedderMisconfigured),
        (413, EmbedderInputRejected),
        (422, EmbedderInputRejected),
    ],
)
def test_a_lasting_failure_is_not_tried_again(make, server: Server, code, error) -> None:
    server.script = [status(code)]
    embedder, _ = make()
    with pytest.raises(error, match=str(code)):
        embedder.embed_queries(["a"])
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(make, server: Server, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    server.script = [status(302, {"Location": f"{server.url}/elsewhere"})]
    embedder, _ = make(api_key_env="MY_KEY")
    with pytest.raises(EmbedderMisconfigured, match="302"):
        embedder.embed_queries(["a"])
    assert len(server.requests) == 1


def edited(change):
    def reply(request):
        answer = good(request)
        change(answer)
        return 200, {}, answer

    return reply


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (status(200, body=b"{not json"), EmbedderUnavailable, "malformed"),
        (status(200, body=b"\xff\xfe"), EmbedderUnavailable, "malformed"),
        (status(200, body=b"[" * 20_000), EmbedderUnavailable, "malformed"),
        (status(200, body=[]), EmbedderUnavailable, "malformed"),
        (status(200, body={"data": None}), EmbedderUnavailable, "malformed"),
        (edited(lambda a: a["data"].pop()), EmbedderUnavailable, "malformed"),
        (edited(lambda a: a["data"].append(a["data"][0])), EmbedderUnavailable, "3 vectors for 2"),
        (edited(lambda a: a["data"][0].update(index=0)), EmbedderUnavailable, "malformed"),
        (edited(lambda a: a["data"][0].update(index="x")), EmbedderUnavailable, "malformed"),
        (
            edited(lambda a: a["data"][0].update(embedding=["x"] * 3)),
            EmbedderUnavailable,
            "malformed",
        ),
        (
            edited(lambda a: a["data"][0].update(embedding=[[1], [1, 2]])),
            EmbedderUnavailable,
            "malformed",
        ),
        (
            edited(lambda a: a["data"][0].update(embedding=[1.0] * 4)),
            EmbedderMisconfigured,
            r"\(4,\)",
        ),
        (edited(lambda a: a["data"][0].update(embedding=1.0)), EmbedderMisconfigured, r"\(\)"),
        (edited(lambda a: a["data"][0].update(embedding=[0.0] * 3)), EmbedderUnavailable, "zero"),
        (
            edited(lambda a: a["data"][0].update(embedding=[math.nan] * 3)),
            EmbedderUnavailable,
            "finite",
        ),
        (
            edited(lambda a: a["data"][0].update(embedding=[math.inf] * 3)),
            EmbedderUnavailable,
            "finite",
        ),
    ],
)
def test_a_bad_answer_is_refused(make, server: Server, reply, error, message: str) -> None:
    server.script = [reply]
    embedder, _ = make()
    with pytest.raises(error, match=message) as caught:
        embedder.embed_queries(["private a", "private b"])
    assert "private" not in str(caught.value)


def test_an_answer_that_is_cut_off(make, server: Server) -> None:
    server.script = [status(200, {"Content-Length": "1000"}, b"{}")]
    with pytest.raises(EmbedderUnavailable, match=r"cut off|broke"):
        make(attempts_max=1)[0].embed_queries(["a"])


def test_an_answer_that_is_too_big(make, server: Server) -> None:
    server.script = [status(200, body=b" " * 200_000)]
    with pytest.raises(EmbedderUnavailable, match="larger"):
        make(attempts_max=1)[0].embed_queries(["a"])


def test_a_silent_server_is_given_up(make, server: Server) -> None:
    server.script = [lambda _request: None]
    embedder, _ = make(attempts_max=1, timeout_ms=100)
    with pytest.raises(EmbedderUnavailable, match="timed out"):
        embedder.embed_queries(["a"])


def test_no_server_at_all(make, server: Server) -> None:
    embedder, _ = make(attempts_max=2, base_url="http://127.0.0.1:1/v1")
    with pytest.raises(EmbedderUnavailable, match="cannot connect"):
        embedder.embed_queries(["a"])


def test_the_space_depends_on_the_model_and_not_on_the_host(make) -> None:
    one = make()[0].identity
    assert one.same_space(make(base_url="http://localhost:9/v1")[0].identity)
    assert one.same_space(make(unrelated_cosine=0.3)[0].identity)
    assert not one.same_space(make(model="other")[0].identity)
    assert not one.same_space(make(passage_prefix="passage: ")[0].identity)
    assert not one.same_space(make(dimension=4)[0].identity)


def test_every_error_is_an_embedder_error() -> None:
    for kind in (EmbedderMisconfigured, EmbedderUnavailable, EmbedderInputRejected):
        assert issubclass(kind, EmbedderError)
