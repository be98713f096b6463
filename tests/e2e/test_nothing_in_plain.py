"""A real server with encryption on leaves nothing of what it was told in any file, in plain."""

from __future__ import annotations

import base64
import struct

import pytest
from google.protobuf.json_format import ParseDict
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_testing.servers import ServerProcess, serve_in_vain

WHERE = {"namespace": "production", "tenant": "acme"}
VECTOR = [0.6, 0.8, 0.0, 0.0]
CANARIES = {
    "text": b"canary-text-5f1e",
    "subject": b"canary-subject-5f1e",
    "attribute": b"canary_attribute_5f1e",
    "context": b"canary-context-5f1e",
    "value": b"canary-value-5f1e",
    "episode": b"canary-episode-5f1e",
    "label": b"canary-label-5f1e",
    "quote": b"canary-quote-5f1e",
    "session": b"canary-session-5f1e",
    "request": b"canary-request-5f1e",
    "vector": struct.pack("<4f", *VECTOR),
}


def request(number, text):
    subject = {"type": "person", "id": "canary-subject-5f1e"}
    return ParseDict(
        {
            "partition": WHERE,
            "request_id": f"canary-request-5f1e-{number}",
            "mutations": [
                {
                    "put_fact": {
                        "precondition": {"unconditional": True},
                        "fact": {
                            "subject": subject,
                            "context": "canary-context-5f1e",
                            "kind": "MEMORY_KIND_SEMANTIC",
                            "attribute": "canary_attribute_5f1e",
                            "value": {"string_value": f"canary-value-5f1e-{text}"},
                            "text": f"canary-text-5f1e {text}",
                            "labels": ["canary-label-5f1e"],
                            "session_id": "canary-session-5f1e",
                            "source": {
                                "kind": "SOURCE_KIND_USER_STATEMENT",
                                "quote": "canary-quote-5f1e",
                            },
                            "vector": base64.b64encode(CANARIES["vector"]).decode(),
                        },
                    }
                },
                {
                    "capture_episode": {
                        "episode": {
                            "subject": subject,
                            "content": "canary-episode-5f1e",
                            "source_kind": "SOURCE_KIND_USER_STATEMENT",
                        },
                        "precondition": {"must_not_exist": True},
                        "indexing": "EPISODE_INDEXING_SOURCE_ONLY",
                    }
                },
            ],
        },
        wire.WriteRequest(),
    )


def found_in(folder):
    found = set()
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found |= {name for name, canary in CANARIES.items() if canary in data}
    return found


@pytest.mark.parametrize("encryption", ["on", "off"])
def test_canaries(tmp_path, encryption):
    directory = tmp_path / "d"
    server = ServerProcess(directory, "--encryption", encryption)
    for number in range(3):  # the later ones move the earlier ones into history
        server.stub.Write(request(number, str(number % 2)), timeout=30)
    before = found_in(directory)
    assert server.kill() != 0
    assert found_in(directory) == before
    expected = set() if encryption == "on" else CANARIES.keys() - {"request"}
    assert before == expected
    assert not any(canary.decode("latin-1") in server.log for canary in CANARIES.values())

    other = "off" if encryption == "on" else "on"
    if other == "off":
        refused = serve_in_vain(directory, "--encryption", other)
        assert refused.returncode == 3
        assert "encrypted" in refused.stderr
    again = ServerProcess(directory, "--encryption", "on")
    assert again.stop() == 0


def test_keys_that_are_wrong_or_exposed_end_the_start(tmp_path):
    directory = tmp_path / "d"
    server = ServerProcess(directory)
    assert server.stop() == 0
    key = directory / "keys" / "master.key"
    key.chmod(0o644)
    refused = serve_in_vain(directory)
    assert refused.returncode == 3
    assert "chmod 600" in refused.stderr
    key.chmod(0o600)
    secret = key.read_text().strip()
    key.unlink()
    refused = serve_in_vain(directory)
    assert refused.returncode == 3
    assert "does not exist" in refused.stderr
    assert not key.exists()
    by_variable = ("--master-key-provider", "environment")
    refused = serve_in_vain(directory, *by_variable, variables={"PILLION_MASTER_KEY": secret[:-4]})
    assert refused.returncode == 3
    assert secret[:-4] not in refused.stderr
    refused = serve_in_vain(directory, "--master-key-provider", "kms")
    assert refused.returncode == 2
    assert "environment" in refused.stderr
