"""The import contracts hold, and each of them can fail."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("sidecar/src", "storage/src", "clients/python/src", "proto/python/src")
LINTER = Path(sys.executable).with_name("lint-imports")
# What the domain may use of the standard library: nothing that does I/O, tells time or is random.
DOMAIN_MAY_USE = {
    "__future__",
    "bisect",
    "collections",
    "dataclasses",
    "datetime",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "re",
    "struct",
    "types",
    "typing",
    "unicodedata",
    "uuid",
}


def lint(within, *options):
    """Check the contracts against the sources below a directory."""
    path = os.pathsep.join(str(within / source) for source in SOURCES)
    return subprocess.run(
        [LINTER, "--no-logo", "--config", ROOT / ".importlinter", "--no-cache", *options],
        cwd=within,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of all sources, to plant violations in."""
    copy = tmp_path_factory.mktemp("sources")
    for source in SOURCES:
        shutil.copytree(
            ROOT / source, copy / source, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
    return copy


def test_the_contracts_hold(sources):
    made = lint(sources)
    assert made.returncode == 0, made.stdout


@pytest.mark.parametrize(
    ("contract", "file", "statement"),
    [
        ("layers", "sidecar/src/pillion/service/writer.py", "import pillion.transport.status"),
        ("layers", "sidecar/src/pillion/transport/status.py", "import pillion.bootstrap"),
        ("layers", "sidecar/src/pillion/domain/scope.py", "import pillion_storage.api"),
        ("layers", "sidecar/src/pillion/jobs/embedding.py", "import pillion.transport.status"),
        ("layers", "sidecar/src/pillion/embedders/cache.py", "import pillion.service.writer"),
        ("layers", "sidecar/src/pillion/embedders/cache.py", "import pillion.summarizers.words"),
        ("domain-is-pure", "sidecar/src/pillion/domain/values.py", "import numpy"),
        ("domain-is-pure", "sidecar/src/pillion/domain/values.py", "import pillion.config"),
        ("wire-stays-at-the-edge", "sidecar/src/pillion/service/reader.py", "import grpc"),
        (
            "wire-stays-at-the-edge",
            "sidecar/src/pillion/config.py",
            "from google.protobuf import message",
        ),
        (
            "wire-stays-below-the-commands",
            "sidecar/src/pillion/cli/serve.py",
            "from pillion_proto.memory.v1 import types_pb2",
        ),
        (
            "only-bootstrap-sees-concrete-classes",
            "sidecar/src/pillion/service/writer.py",
            "import pillion_storage.lmdb",
        ),
        (
            "only-bootstrap-sees-concrete-classes",
            "sidecar/src/pillion/transport/server.py",
            "from pillion_storage.ram import open_store",
        ),
        (
            "storage-knows-only-the-domain",
            "storage/src/pillion_storage/api.py",
            "import pillion.ports",
        ),
        (
            "cryptography-stays-in-the-seals",
            "sidecar/src/pillion/service/draft.py",
            "import cryptography.exceptions",
        ),
        (
            "seals-go-over-any-engine",
            "storage/src/pillion_storage/sealed/store.py",
            "import pillion_storage.lmdb.store",
        ),
        (
            "client-stands-alone",
            "clients/python/src/pillion_client/errors.py",
            "import pillion.domain.errors",
        ),
    ],
)
def test_a_planted_violation_is_found(sources, contract, file, statement):
    path = sources / file
    before = path.read_text()
    path.write_text(f"{before}\n{statement}\n")
    try:
        made = lint(sources, "--contract", contract)
    finally:
        path.write_text(before)
    assert made.returncode != 0
    assert "BROKEN" in made.stdout
    assert Path(file).stem in made.stdout


def _imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_the_domain_uses_no_clock_no_chance_and_no_files():
    modules = sorted((ROOT / "sidecar/src/pillion/domain").glob("*.py"))
    assert modules
    for module in modules:
        for name in _imported(ast.parse(module.read_text())):
            allowed = name.startswith("pillion.domain") or name.split(".")[0] in DOMAIN_MAY_USE
            assert allowed, f"{module.name} imports {name}"
