"""kill -9 in the midst of an erasure: the next start finishes it before anything is served."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from pillion.domain.erasure import Stage
from pillion.domain.scope import Subject
from pillion_storage.api import KEY_SPACE_END
from pillion_storage.erasure_ledger import ErasureLedger
from pillion_storage.verify import verify
from pillion_testing.service import ACME, MIRA, add, key_of, lmdb_service

NOOR = Subject("user", "noor")
MARK = "canary-5f1e"
# Where the process ends: the object, the method, and at which call of it, before or after.
POINTS = {
    "planned": ("records", "begin", 1, "after"),
    "first records deleted": ("store", "commit", 2, "after"),
    "amid the deletions": ("store", "commit", 4, "after"),
    "keys retired": ("store", "retire_owner", 1, "after"),
    "amid the purge": ("store", "purge", 2, "after"),
    "before history is scrubbed": ("store", "scrub", 1, "before"),
    "history scrubbed": ("store", "scrub", 1, "after"),
    "before the ledger": ("ledger", "append", 1, "before"),
    "written in the ledger": ("ledger", "append", 1, "after"),
    "keys destroyed": ("store", "destroy_keys", 1, "after"),
    "file written anew": ("store", "compact", 1, "after"),
    "before the receipt": ("records", "finish", 1, "before"),
    "receipt written": ("records", "finish", 1, "after"),
}
SCRIPT = """
import os, signal, sys
from pathlib import Path
from pillion.domain.commands import ForgetMode
from pillion_storage.erasure_ledger import ErasureLedger
from pillion_testing.service import MIRA, lmdb_service
directory, sealed, what, method, number, when, whole = sys.argv[1:]
ledger = ErasureLedger(Path(directory + ".erasures"))
service = lmdb_service(Path(directory), sealed=sealed == "sealed", ledger=ledger)
eraser = service.use_cases.eraser
target = {"records": eraser.records, "store": service.store, "ledger": ledger}[what]
true = getattr(target, method)
left = [int(number)]
def stop(*given, **more):
    left[0] -= 1
    if left[0] == 0 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    outcome = true(*given, **more)
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return outcome
setattr(target, method, stop)
contexts = None if whole == "whole" else frozenset({""})
service.forget(ForgetMode.ERASE, subject=MIRA, contexts=contexts)
print("not killed")
"""


def open_again(directory, sealed, ledger):
    return lmdb_service(directory, sealed=sealed, ledger=ledger)


def states(service):
    for at in range(service.revision + 1):
        yield from service.store.scan(ACME, b"", KEY_SPACE_END, limit=10_000, at=at).rows


@pytest.mark.parametrize("whole", ["whole", "context"])
@pytest.mark.parametrize("kind", ["sealed", "plain"])
@pytest.mark.parametrize("point", POINTS)
def test_an_erasure_outlives_a_kill(tmp_path, point, kind, whole):
    directory, sealed = tmp_path / "d", kind == "sealed"
    what, method, number, when = POINTS[point]
    if (method in {"retire_owner", "destroy_keys"}) != sealed and method in {
        "retire_owner",
        "destroy_keys",
        "compact",
    }:
        pytest.skip("not a step of this kind of store")
    if method == "scrub" and whole == "whole":
        pytest.skip("nothing stays that would have to be scrubbed")
    directory.mkdir()
    ledger = tmp_path / "d.erasures"
    service = open_again(directory, sealed, ErasureLedger(ledger))
    for one in range(150):
        service.write(add(f"{MARK} {one}"))
    for day in range(30):
        service.put(f"{MARK} {day}", valid_from=day)
    service.put("stays", attribute="other", context="home")
    service.put("stays", subject=NOOR)
    before = service.revision
    service.close()
    command = [sys.executable, "-c", SCRIPT, str(directory), kind, what, method, str(number), when]
    ended = subprocess.run(
        [*command, whole], env=os.environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stdout + ended.stderr

    service = open_again(directory, sealed, ErasureLedger(ledger))
    records = service.use_cases.eraser.records
    (erasure,) = records.all(ACME)
    assert erasure.stage is Stage.DONE
    assert erasure.verification
    assert not any(MARK.encode() in row.value for row in states(service))
    assert service.value_at(key=key_of(subject=NOOR)) == "stays"
    assert service.value_at(key=key_of(subject=NOOR), exact_revision=before) == "stays"
    kept = "stays" if whole == "context" else None
    key = key_of("other", subject=MIRA, context="home")
    assert service.value_at(key=key) == kept
    assert service.value_at(key=key, exact_revision=before) == kept
    assert service.put("fresh").id
    service.close()
    report = verify(directory)
    assert report.clean, report.findings
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert not any(MARK.encode() in path.read_bytes() for path in [*files, ledger])
