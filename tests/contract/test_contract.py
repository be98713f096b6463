"""The contract's own checks: linted, not broken, stubs fresh, reasons and features all known.

``proto/baseline/v1.binpb`` is the contract as it was last published. After a release renew it with
``buf build --exclude-source-info -o baseline/v1.binpb`` in ``proto``; never to make a test pass.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pillion.domain.errors import Reason
from pillion.transport.capabilities import FEATURES, METHODS
from pillion.transport.status import CODES
from pillion_proto.memory.v1 import (
    admin_service_pb2,
    errors_pb2,
    memory_service_pb2,
    schema_service_pb2,
)

ROOT = Path(__file__).resolve().parents[2]
PROTO = ROOT / "proto"
BASELINE = PROTO / "baseline" / "v1.binpb"
BUF = Path(sys.executable).with_name("buf")


def buf(*arguments, within=PROTO):
    return subprocess.run(
        [BUF, *arguments], cwd=within, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def copy(tmp_path):
    """A copy of the contract, to break."""
    shutil.copytree(PROTO / "pillion", tmp_path / "pillion")
    shutil.copy(PROTO / "buf.yaml", tmp_path)

    def change(file, old, new):
        path = tmp_path / "pillion" / "memory" / "v1" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    change.directory = tmp_path
    return change


def test_the_contract_is_linted():
    made = buf("lint")
    assert (made.returncode, made.stdout) == (0, "")


def test_a_field_without_a_comment_is_found(copy):
    copy("search.proto", "  // Its start. Absent: unbounded.\n", "")
    made = buf("lint", within=copy.directory)
    assert made.returncode != 0
    assert "search.proto" in made.stdout


def test_the_contract_does_not_break_the_published_one():
    made = buf("breaking", "--against", str(BASELINE))
    assert (made.returncode, made.stdout) == (0, "")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("types.proto", "string tenant = 2;", "string tenant = 3;"),
        ("types.proto", "string tenant = 2;", "bytes tenant = 2;"),
        ("types.proto", "string tenant = 2;", ""),
        ("errors.proto", "ERROR_REASON_CORRUPT = 90;", "ERROR_REASON_CORRUPT = 91;"),
        (
            "memory_service.proto",
            "  rpc Get(GetRequest) returns (GetResponse);",
            "  rpc Got(GetRequest) returns (GetResponse);",
        ),
    ],
)
def test_a_break_is_found(copy, file, old, new):
    copy(file, old, new)
    made = buf("breaking", "--against", str(BASELINE), within=copy.directory)
    assert made.returncode != 0
    assert file in made.stdout


def test_an_addition_is_no_break(copy):
    copy("types.proto", "string tenant = 2;", "string tenant = 2;\n  // New.\n  string new = 3;")
    assert buf("breaking", "--against", str(BASELINE), within=copy.directory).returncode == 0


def test_the_stubs_are_fresh():
    made = subprocess.run(
        [sys.executable, ROOT / "scripts" / "gen.py", "--check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (made.returncode, made.stdout) == (0, "")


def test_the_published_reasons_are_the_domains():
    published = {
        name.removeprefix("ERROR_REASON_")
        for name, number in errors_pb2.ErrorReason.items()
        if number
    }
    assert published == {reason.value for reason in Reason}


def test_a_reason_travels_with_the_code_that_the_contract_says():
    """The contract says it in the comment before each reason: ``// CODE. Why.``"""
    said, comment = {}, ""
    for line in (PROTO / "pillion/memory/v1/errors.proto").read_text().splitlines():
        words = line.split()
        if words[:1] == ["//"]:
            comment = comment or words[1].rstrip(".")
        elif words and words[0].startswith("ERROR_REASON_"):
            said[words[0].removeprefix("ERROR_REASON_")] = comment
            comment = ""
        else:
            comment = ""
    del said["UNSPECIFIED"]
    assert said == {reason.value: code.name for reason, code in CODES.items()}


SERVICES = (
    memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"],
    admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
    schema_service_pb2.DESCRIPTOR.services_by_name["SchemaService"],
)


def test_every_method_of_the_contract_is_in_the_table():
    declared = {
        f"/{service.full_name}/{method.name}" for service in SERVICES for method in service.methods
    }
    assert set(METHODS) == declared


def test_every_capability_is_a_methods_or_a_features():
    of_methods = {method.capability for method in METHODS.values()} - {None}
    of_features = set(FEATURES)
    assert of_methods.isdisjoint(of_features)
    declared = set(memory_service_pb2.Capability.values()) - {0}
    assert of_methods | of_features == declared


def test_methods_of_one_capability_are_served_together():
    for capability in {method.capability for method in METHODS.values()} - {None}:
        served = {one.served for one in METHODS.values() if one.capability == capability}
        assert len(served) == 1, memory_service_pb2.Capability.Name(capability)
