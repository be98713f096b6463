"""Settings: where they come from, which wins, and errors that name the setting."""

import subprocess
import sys
from pathlib import Path

import pytest
from pillion.config import SettingsError, load_settings, misspelt_variables, parse_address


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    import os

    for name in list(os.environ):
        if name.startswith("PILLION_"):
            monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "pillion.toml"
        path.write_text(text)
        return path

    return write


def test_the_defaults_need_nothing():
    settings = load_settings({})
    assert settings.directory == Path(".pillion")
    assert settings.socket_path == Path(".pillion/pillion.sock")
    assert (settings.store, settings.embedder, settings.workers) == ("lmdb", "auto", 4)
    assert (settings.drain_seconds, settings.tcp, settings.token_file) == (5.0, None, None)


def test_history_is_kept_for_ever_and_request_ids_for_a_day():
    settings = load_settings({})
    assert (settings.history_window_hours, settings.request_id_window_hours) == (0, 24)
    load_settings({"history_window_hours": "24"})
    load_settings({"request_id_window_hours": "0"})


def test_flags_win_over_variables_and_those_over_the_file(file, monkeypatch):
    path = file("workers = 1\nwrite_workers = 1\nstreams_max = 1\n")
    monkeypatch.setenv("PILLION_WORKERS", "2")
    monkeypatch.setenv("PILLION_WRITE_WORKERS", "2")
    settings = load_settings({"workers": "3"}, path)
    assert (settings.workers, settings.write_workers, settings.streams_max) == (3, 2, 1)


def test_tables_merge_across_sources(file, monkeypatch):
    path = file(
        "[store_options]\nqueue_batches_max = 7\n[embedder_options]\nmodel = 'm'\ndimension = 3\n"
    )
    monkeypatch.setenv("PILLION_STORE_OPTIONS__SIZE_BYTES_MAX", str(1 << 30))
    settings = load_settings({}, path)
    assert settings.store_options.size_bytes_max == 1 << 30
    assert settings.store_options.queue_batches_max == 7
    assert settings.embedder_options == {"model": "m", "dimension": 3}


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"workers": "0"}, "workers"),
        ({"workers": "many"}, "workers"),
        ({"log_format": "xml"}, "log_format"),
        ({"log_level": "loud"}, "log_level"),
        ({"drain_seconds": "-1"}, "drain_seconds"),
        ({"default_deadline_ms": "0"}, "default_deadline_ms"),
        ({"store_options": {"size_bytes_max": 5}}, "store_options.size_bytes_max"),
        ({"store_options": {"size": 5}}, "store_options.size"),
        ({"watchers_max": "0"}, "watchers_max"),
        ({"sweep_interval_seconds": "0"}, "sweep_interval_seconds"),
        ({"partitions_memory_bytes": "5"}, "partitions_memory_bytes"),
        ({"history_window_hours": "-1"}, "history_window_hours"),
        ({"history_window_hours": "23"}, "history_window_hours is 23 and request_id_window_hours"),
        ({"history_window_hours": "23"}, "24 hours: history must be kept at least as long"),
        (
            {"history_window_hours": "48", "request_id_window_hours": "0"},
            "history_window_hours is 48 and request_id_window_hours for ever (0)",
        ),
        ({"tcp": "nonsense"}, "tcp: write HOST:PORT"),
        ({"tcp": "localhost:1"}, "tcp: name the host by its address"),
        ({"tcp": "0.0.0.0:1"}, "tcp: only a loopback address is served without TLS"),
        ({"tcp": "127.0.0.1:0"}, "set token_file, or allow_unauthenticated_tcp=true"),
        ({"worker": "1"}, "worker: no such setting; did you mean workers?"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_do(flags, named):
    with pytest.raises(SettingsError) as caught:
        load_settings(flags)
    assert named in str(caught.value)


def test_values_are_not_repeated():
    with pytest.raises(SettingsError) as caught:
        load_settings({"workers": "secret", "store_options": {"size_bytes_max": "secret"}})
    assert "secret" not in str(caught.value)


def test_tcp_is_served_with_tokens_or_on_demand():
    assert load_settings({"tcp": "7430", "token_file": "t.json"}).tcp == "7430"
    assert load_settings({"tcp": "127.0.0.1:0", "allow_unauthenticated_tcp": True}).tcp is not None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("7430", ("127.0.0.1", 7430)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("127.1.2.3:65535", ("127.1.2.3", 65535)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", ":", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "[::]:1"]
)
def test_what_is_no_loopback_address_is_refused(text):
    with pytest.raises(ValueError, match=r"HOST:PORT|address"):
        parse_address(text)


def test_a_file_that_cannot_be_used_is_named(file, tmp_path):
    with pytest.raises(SettingsError, match=r"config: .*nowhere\.toml cannot be read"):
        load_settings({}, tmp_path / "nowhere.toml")
    with pytest.raises(SettingsError, match="is not TOML"):
        load_settings({}, file("workers = ="))
    with pytest.raises(SettingsError, match="did you mean drain_seconds"):
        load_settings({}, file("drain_second = 1"))


def test_an_unreadable_variable_is_named(monkeypatch):
    monkeypatch.setenv("PILLION_EMBEDDER_OPTIONS", "{")
    with pytest.raises(SettingsError, match="embedder_options"):
        load_settings({})


def test_a_misspelt_variable_is_told_and_others_are_left_alone():
    environment = {
        "PILLION_DIRECTRY": "x",
        "PILLION_TOKEN": "x",
        "PILLION_WORKERS": "1",
        "PILLION_STORE_OPTIONS__SIZE_BYTES_MAX": "1",
        "HOME": "x",
    }
    (sentence,) = misspelt_variables(environment)
    assert "PILLION_DIRECTRY" in sentence
    assert "PILLION_DIRECTORY" in sentence


def test_reading_settings_loads_neither_grpc_nor_numpy():
    """Nor does the command that reads them: it loads the server once it is to run."""
    code = (
        "import sys, pillion.cli.serve;"
        "print([name for name in ('grpc', 'numpy', 'google.protobuf') if name in sys.modules])"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "[]"
