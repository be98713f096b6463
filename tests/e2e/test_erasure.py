"""Erased means gone: from every byte of every file, from memory after a restart, from a restore."""

from __future__ import annotations

import base64
import shutil
import struct
from pathlib import Path

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from pillion.domain.scope import Subject
from pillion_proto.memory.v1 import admin_service_pb2 as admin_wire
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1.admin_service_pb2_grpc import AdminServiceStub
from pillion_storage.api import KEY_SPACE_END, Partition, StoreSettings
from pillion_storage.keys import KeySpace
from pillion_storage.lmdb import open_store
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed
from pillion_storage.verify import verify
from pillion_testing.servers import ServerProcess, reason_of, serve_in_vain

WHERE = Partition("production", "acme")
PARTITION = {"namespace": WHERE.namespace, "tenant": WHERE.tenant}
VECTOR = [0.36, 0.48, 0.8, 0.0]
MARK = "canary-5f1e"
CANARIES = {
    "any text, name or label": MARK.encode(),
    "vector": struct.pack("<4f", *VECTOR),
}
MIRA = {"type": "person", "id": f"{MARK}-mira"}
NOOR = {"type": "person", "id": "noor"}
DAY = 86_400
SECONDS = 60


def packed(*numbers):
    return base64.b64encode(struct.pack("<4f", *numbers)).decode()


def told(kind="SOURCE_KIND_USER_STATEMENT", **more):
    return {"kind": kind, **more}


def fact(value, *, subject=MIRA, attribute=f"attribute_{MARK}", **more):
    return {
        "put_fact": {
            "precondition": {"unconditional": True},
            "fact": {
                "subject": subject,
                "context": f"context-{MARK}" if subject is MIRA else "",
                "kind": "MEMORY_KIND_SEMANTIC",
                "attribute": attribute,
                "value": value,
                "source": told(),
                **more,
            },
        }
    }


def add(text, *, subject=MIRA, **more):
    memory = {"subject": subject, "kind": "MEMORY_KIND_EPISODIC", "text": text}
    return {"add_memory": {"memory": {"source": told(), **memory, **more}}}


def capture(content, **more):
    episode = {"subject": MIRA, "content": content, "source_kind": "SOURCE_KIND_USER_STATEMENT"}
    return {"capture_episode": {"episode": {**episode, **more}}}


def erasing(directory, *flags):
    """A server that erases, which is a preview and off by default."""
    return ServerProcess(directory, "--erasure", "preview", *flags)


class Story:
    """A server that was told of somebody who is to be erased, and of somebody who is not."""

    def __init__(self, server):
        self.server = server
        self.admin = AdminServiceStub(server.channel)

    def write(self, *mutations, request_id=""):
        request = ParseDict(
            {"partition": PARTITION, "request_id": request_id, "mutations": list(mutations)},
            wire.WriteRequest(),
        )
        return self.server.stub.Write(request, timeout=SECONDS).results

    def forget(self, *, execute=True, **selector):
        request = wire.ForgetRequest(
            partition=PARTITION, selector=selector, mode=3, run=2 if execute else 1
        )
        return self.server.stub.Forget(request, timeout=SECONDS).report

    def tell(self):
        for number in range(3):  # the later ones move the earlier ones into history
            self.write(
                fact(
                    {"string_value": f"value {MARK} {number % 2}"},
                    labels=[f"label-{MARK}"],
                    session_id=f"session-{MARK}",
                    vector=packed(*VECTOR),
                ),
                request_id=f"request-{number}",
            )
        (episode,) = self.write(capture(f"episode {MARK}", external_ref=f"reference {MARK}"))
        source = told(episode_id=episode.id, quote=MARK, author=f"author {MARK}")
        (derived,) = self.write(add(f"from the episode {MARK}", subject=NOOR, source=source))
        self.write(
            add(f"from a memory {MARK}", subject=NOOR, derived_from=[derived.id]),
            fact({"subject_value": MIRA}, subject=NOOR, attribute="knows"),
        )
        for day in range(4):
            self.write(
                add(
                    f"Mira met the {MARK} team in Berlin about the launch.",
                    valid_from=f"2026-01-0{day + 1}T10:00:00Z",
                )
            )
        consolidated = self.server.stub.Consolidate(
            wire.ConsolidateRequest(partition=PARTITION, subject=MIRA, cluster_size_min=2),
            timeout=SECONDS,
        )
        assert consolidated.report.consolidated == 4
        (stays,) = self.write(
            add("noor likes tea", subject=NOOR, vector=struct.pack("<4f", 1, 0, 0, 0))
        )
        self.stays = [stays.id]
        search = wire.SearchRequest(partition=PARTITION, text=f"{MARK} team", top_k=5)
        assert self.server.stub.Search(search, timeout=SECONDS).hits

    def listed(self):
        request = ParseDict(
            {
                "partition": PARTITION,
                "filter": {
                    "all_contexts": True,
                    "include_retracted": True,
                    "include_expired": True,
                    "valid_only": False,
                },
            },
            wire.ListRequest(),
            ignore_unknown_fields=True,
        )
        return self.server.stub.List(request, timeout=SECONDS)


def canaries_in(data):
    return {name for name, canary in CANARIES.items() if canary in data}


def found_in(*folders):
    found = {}
    for folder in folders:
        for path in [folder] if folder.is_file() else folder.rglob("*"):
            if path.is_file() and (names := canaries_in(path.read_bytes())):
                found[path.name] = names
    return found


def memory_of(pid):
    """Every byte of a process that it can write to, and of its heap."""
    process = Path("/proc") / str(pid)
    with (process / "mem").open("rb", 0) as memory:
        for line in (process / "maps").read_text().splitlines():
            span, rights = line.split()[:2]
            begin, end = (int(one, 16) for one in span.split("-"))
            if rights.startswith("rw"):
                memory.seek(begin)
                try:
                    yield memory.read(end - begin)
                except OSError:
                    continue


def open_directory(directory, encryption):
    settings = StoreSettings(directory=directory, size_bytes_initial=1 << 20)
    if encryption == "off":
        return open_store(settings)
    keys = directory / "keys"
    return open_sealed(open_store, settings, SealSettings(keys, FileMasterKey(keys / "master.key")))


def readable_in(directory, encryption):
    """The canaries that any recorded state of a directory shows to who has its keys."""
    store = open_directory(directory, encryption)
    found = set()
    for at in range(store.head(WHERE).revision + 1):
        for row in store.scan(WHERE, b"", KEY_SPACE_END, limit=10_000, at=at).rows:
            found |= canaries_in(row.value)
    store.close()
    return found


def data_keys(directory):
    """The data keys of the one who is to be erased, in bare form."""
    store = open_directory(directory, "on")
    ring = store.keyring
    tag = ring.partition_tag(WHERE)
    subject = KeySpace(store.partition_secret(WHERE)).subject(Subject(MIRA["type"], MIRA["id"]))
    ids = ring.keys_of(tag, ring.owner_tag(tag, subject))
    keys = [ring.data_key(one) for one in ids]
    store.close()
    assert keys
    return keys


@pytest.mark.parametrize("encryption", ["on", "off"])
def test_nothing_is_left_anywhere(tmp_path, encryption):
    directory, ledger = tmp_path / "d", tmp_path / "d.erasures"
    flags = ("--encryption", encryption, "--access-flush-seconds", "1")
    story = Story(erasing(directory, *flags))
    story.tell()
    assert story.server.stop() == 0
    backup = tmp_path / "backup"
    shutil.copytree(directory, backup, ignore=shutil.ignore_patterns("*.sock"))
    keys = data_keys(backup) if encryption == "on" else []
    assert readable_in(backup, encryption) == CANARIES.keys()

    story = Story(erasing(directory, *flags))
    before = story.listed()
    dry = story.forget(subject={"subject": MIRA}, execute=False)
    assert dry.dry_run
    assert dry.derived == 3
    assert story.listed() == before
    report = story.forget(subject={"subject": MIRA})
    assert (report.memories, report.episodes, report.derived) == (
        dry.memories,
        dry.episodes,
        dry.derived,
    )
    receipt = report.receipt
    assert receipt.verification
    method = "key_destroyed" if encryption == "on" else "compacted"
    assert method in {place.method for place in receipt.places}
    assert receipt.audit_entry_id in ledger.read_text() or ledger.stat().st_size
    listed = story.admin.ListErasureReceipts(admin_wire.ListErasureReceiptsRequest()).receipts
    assert list(listed) == [receipt]
    one = admin_wire.GetErasureReceiptRequest(id=receipt.id, partition=PARTITION)
    assert story.admin.GetErasureReceipt(one).receipt == receipt
    assert [one.memory.text for one in story.listed().records] == ["noor likes tea"]
    assert MARK not in story.server.log
    assert story.server.stop() == 0
    assert found_in(directory, ledger) == {}
    assert readable_in(directory, encryption) == set()
    assert verify(directory).clean

    if encryption == "on":  # old pages, free pages and backups: nobody has their keys any more
        mixed = tmp_path / "mixed"
        shutil.copytree(backup, mixed, ignore=shutil.ignore_patterns("keys"))
        shutil.copytree(directory / "keys", mixed / "keys")
        assert readable_in(mixed, encryption) == set()

    story = Story(erasing(directory, *flags))
    assert [one.memory.text for one in story.listed().records] == ["noor likes tea"]
    for data in memory_of(story.server.pid):
        assert canaries_in(data) == set()
        assert not any(key in data for key in keys)
    assert story.server.stop() == 0

    # The whole directory, its keyring too, as it was before the erasure.
    shutil.rmtree(directory)
    shutil.copytree(backup, directory)
    story = Story(erasing(directory, *flags))
    assert [one.memory.text for one in story.listed().records] == ["noor likes tea"]
    listed = story.admin.ListErasureReceipts(admin_wire.ListErasureReceiptsRequest()).receipts
    assert [one.id for one in listed] == [receipt.id]
    for data in memory_of(story.server.pid):
        assert not any(key in data for key in keys)
    assert story.server.stop() == 0
    assert found_in(directory, ledger) == {}
    assert readable_in(directory, encryption) == set()
    assert verify(directory).clean


def test_old_data_under_the_newest_keyring_stays_erased(tmp_path):
    directory = tmp_path / "d"
    story = Story(erasing(directory))
    story.tell()
    assert story.server.stop() == 0
    backup = tmp_path / "backup"
    shutil.copytree(directory, backup, ignore=shutil.ignore_patterns("*.sock", "keys"))
    story = Story(erasing(directory))
    story.forget(subject={"subject": MIRA})
    assert story.server.stop() == 0
    shutil.copytree(backup, directory, dirs_exist_ok=True)
    story = Story(erasing(directory))
    assert not any(MARK in one.memory.text for one in story.listed().records)
    assert story.server.stop() == 0
    assert readable_in(directory, "on") == set()
    assert verify(directory).clean


def test_a_ledger_that_was_changed_ends_the_start(tmp_path):
    directory, ledger = tmp_path / "d", tmp_path / "d.erasures"
    story = Story(erasing(directory))
    (gone,) = story.write(add("something"))
    story.forget(ids={"ids": [gone.id]})
    assert story.server.stop() == 0
    ledger.write_text(ledger.read_text().replace('"subject":""', '"subject":"ab"'))
    refused = serve_in_vain(directory)
    assert refused.returncode == 3
    assert "line 1 of the erasure ledger" in refused.stderr


def test_an_erasure_that_cannot_be_written_down_erases_nothing(tmp_path):
    directory = tmp_path / "d"
    (tmp_path / "file").write_text("")
    story = Story(erasing(directory, "--erasure-ledger", tmp_path / "file" / "ledger"))
    (kept,) = story.write(add("something"))
    with pytest.raises(grpc.RpcError) as caught:
        story.forget(ids={"ids": [kept.id]})
    assert reason_of(caught.value) == "ERASURE_UNPROVEN"
    assert [one.memory.id for one in story.listed().records] == [kept.id]
    assert story.server.stop() == 0
    refused = serve_in_vain(directory, "--erasure-ledger", directory / "inside")
    assert refused.returncode == 2
    assert "erasure_ledger" in refused.stderr


@pytest.mark.parametrize("execute", [False, True])
def test_by_default_nothing_is_erased_and_the_refusal_says_why(tmp_path, execute):
    server = ServerProcess(tmp_path / "data")
    story = Story(server)
    (kept,) = story.write(add("something"))
    with pytest.raises(grpc.RpcError) as caught:
        story.forget(ids={"ids": [kept.id]}, execute=execute)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert reason_of(caught.value) == "NOT_SERVED"
    assert "SECURITY.md" in caught.value.details()
    assert len(story.listed().records) == 1
    assert server.stop() == 0
