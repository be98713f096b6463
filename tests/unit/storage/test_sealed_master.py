"""The master key: every way in which it may be missing, wrong or exposed."""

from __future__ import annotations

import base64
import os

import pytest
from pillion_storage.errors import MasterKeyUnusable
from pillion_storage.sealed import EnvironmentMasterKey, FileMasterKey
from pillion_storage.sealed.master import create_environment, create_file

KEY = bytes(range(32))
CONTEXT = b"context"


def test_a_file_is_made_once_private_and_whole(tmp_path):
    path = tmp_path / "master.key"
    blob = FileMasterKey(path).wrap(KEY, CONTEXT)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(base64.b64decode(path.read_bytes())) == 32
    before = path.read_bytes()
    FileMasterKey(path).wrap(KEY, CONTEXT)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert FileMasterKey(path).unwrap(blob, CONTEXT) == KEY


def test_a_missing_file_is_not_made_to_open_something(tmp_path):
    with pytest.raises(MasterKeyUnusable, match="does not exist"):
        FileMasterKey(tmp_path / "none").unwrap(b"x" * 60, CONTEXT)
    assert list(tmp_path.iterdir()) == []


def test_what_was_wrapped_is_bound_to_key_and_context(tmp_path):
    first, second = FileMasterKey(tmp_path / "1"), FileMasterKey(tmp_path / "2")
    blob = first.wrap(KEY, CONTEXT)
    second.wrap(KEY, CONTEXT)
    for master, data, context in (
        (second, blob, CONTEXT),
        (first, blob, b"other"),
        (first, blob[:-1], CONTEXT),
        (first, b"", CONTEXT),
        (first, blob[:-1] + bytes([blob[-1] ^ 1]), CONTEXT),
    ):
        with pytest.raises(MasterKeyUnusable, match="not the one"):
            master.unwrap(data, context)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601])
def test_a_file_open_to_others_is_refused(tmp_path, mode):
    path = tmp_path / "master.key"
    FileMasterKey(path).wrap(KEY, CONTEXT)
    path.chmod(mode)
    with pytest.raises(MasterKeyUnusable, match="chmod 600"):
        FileMasterKey(path).wrap(KEY, CONTEXT)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"short", base64.b64encode(bytes(range(31))), base64.b64encode(bytes(range(33))),
     base64.b64encode(bytes(32)), b"!" * 44, base64.b64encode(bytes(range(32)))[:-2],
     bytes(range(32)), b"A" * 10_000],
)  # fmt: skip
def test_what_is_no_key_is_refused_and_not_repeated(tmp_path, content):
    path = tmp_path / "master.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(MasterKeyUnusable, match="32 random bytes") as caught:
        FileMasterKey(path).wrap(KEY, CONTEXT)
    if content.strip():
        assert content.decode(errors="replace")[:20] not in str(caught.value)
    assert path.read_bytes() == content


def test_links_folders_and_pipes_are_refused(tmp_path):
    real = tmp_path / "real"
    FileMasterKey(real).wrap(KEY, CONTEXT)
    link, folder, pipe = tmp_path / "link", tmp_path / "folder", tmp_path / "pipe"
    link.symlink_to(real)
    folder.mkdir()
    os.mkfifo(pipe)
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "elsewhere")
    for path in (link, folder, pipe, dangling):
        with pytest.raises(MasterKeyUnusable, match=r"link|plain file"):
            FileMasterKey(path).wrap(KEY, CONTEXT)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(MasterKeyUnusable, match="can't be made"):
        FileMasterKey(tmp_path / "none" / "master.key").wrap(KEY, CONTEXT)


def test_the_environment(monkeypatch, tmp_path):
    text = base64.b64encode(bytes(range(100, 132))).decode()
    environment = {}
    master = EnvironmentMasterKey("A_KEY", environment)
    for wrong in (None, "", "short", text[:-2]):
        environment.clear()
        if wrong is not None:
            environment["A_KEY"] = wrong
        with pytest.raises(MasterKeyUnusable, match="A_KEY"):
            master.wrap(KEY, CONTEXT)
    environment["A_KEY"] = f" {text}\n"
    assert master.unwrap(master.wrap(KEY, CONTEXT), CONTEXT) == KEY
    monkeypatch.setenv("PILLION_MASTER_KEY", text)
    made = create_environment({}, tmp_path)
    assert made.unwrap(master.wrap(KEY, CONTEXT), CONTEXT) == KEY


def test_options(tmp_path):
    made = create_file({"path": str(tmp_path / "k")}, tmp_path / "keys")
    made.wrap(KEY, CONTEXT)
    assert (tmp_path / "k").exists()
    for create in (create_file, create_environment):
        with pytest.raises(ValueError, match="no such option"):
            create({"pth": "x"}, tmp_path)
    with pytest.raises(ValueError, match="must be a text"):
        create_file({"path": 3}, tmp_path)
