"""``pillion verify``: exit codes, a table for people, a document for programs."""

import os

import pytest
from pillion_storage.api import Batch, Partition, StoreSettings
from pillion_storage.lmdb import open_store
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed

HERE = Partition("n", "t")
MARK = b"unmistakable-value"


@pytest.fixture
def store(folder):
    made = open_store(StoreSettings(directory=folder / "d", random_bytes=os.urandom))
    made.commit(HERE, Batch(puts={b"a": MARK}))
    yield made
    made.close()


def damage(directory):
    data = directory / "data.mdb"
    content = data.read_bytes()
    assert MARK in content
    data.write_bytes(content.replace(MARK, MARK.swapcase()))


def test_a_sound_directory(pillion, store, folder):
    store.close()
    outcome = pillion("verify", "--directory", folder / "d")
    assert outcome.code == 0
    assert "nothing is wrong" in outcome.out
    outcome = pillion("verify", "--json", "--directory", folder / "d")
    assert (outcome.code, outcome.document["clean"], outcome.document["findings"]) == (0, True, [])
    assert outcome.document["rows"]["current"] == 1


def test_damage_is_listed(pillion, store, folder, monkeypatch):
    store.close()
    damage(folder / "d")
    monkeypatch.setenv("PILLION_DIRECTORY", str(folder / "d"))
    outcome = pillion("verify")
    assert outcome.code == 1
    assert "checksum" in outcome.out
    assert "backup" in outcome.err
    outcome = pillion("--json", "verify")
    assert outcome.code == 1
    assert outcome.document["findings_total"] == len(outcome.document["findings"]) == 1
    assert outcome.document["findings"][0]["record"].startswith("current row")


def test_a_directory_in_use_and_one_that_is_no_store(pillion, store, folder):
    assert pillion("verify", "--directory", folder / "d").code == 3
    outcome = pillion("verify", "--json", "--directory", folder / "none")
    assert outcome.code == 3
    assert outcome.document["error"]["reason"] == "StoreUnusable"
    assert not (folder / "none").exists()


def test_encrypted_values_are_authenticated_where_the_key_is(pillion, folder, monkeypatch):
    directory = folder / "d"
    directory.mkdir()
    master = FileMasterKey(directory / "keys" / "master.key")
    settings = StoreSettings(directory=directory, random_bytes=os.urandom)
    made = open_sealed(open_store, settings, SealSettings(directory / "keys", master))
    made.commit(HERE, Batch(puts={b"a": MARK}))
    made.close()
    outcome = pillion("--json", "verify", "--directory", directory)
    assert (outcome.code, outcome.document["values_authenticated"]) == (0, True)
    elsewhere = folder / "elsewhere.key"
    (directory / "keys" / "master.key").rename(elsewhere)
    outcome = pillion("--json", "verify", "--directory", directory)
    assert (outcome.code, outcome.document["values_authenticated"]) == (0, False)
    outcome = pillion("verify", "--directory", directory)
    assert "not authenticated" in outcome.err
    outcome = pillion("--json", "verify", "--directory", directory, "--master-key-file", elsewhere)
    assert (outcome.code, outcome.document["values_authenticated"]) == (0, True)
    monkeypatch.setenv("PILLION_MASTER_KEY", elsewhere.read_text())
    outcome = pillion("--json", "verify", "--directory", directory)
    assert (outcome.code, outcome.document["values_authenticated"]) == (0, True)
    elsewhere.chmod(0o644)
    outcome = pillion("verify", "--directory", directory, "--master-key-file", elsewhere)
    assert outcome.code == 3
    assert "chmod 600" in outcome.err
