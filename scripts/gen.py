"""Generate the Python stubs of the contract, or check that the committed ones are fresh.

protoc writes modules that import ``pillion.memory.v1``, which would collide with the product's
own package, so imports are moved under ``pillion_proto``. Descriptors keep their names.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
CONTRACT = ROOT / "proto"
STUBS = CONTRACT / "python" / "src" / "pillion_proto" / "memory"
MOVED = re.compile(r"^(from|import) pillion\.memory", re.MULTILINE)


def generate(into: Path) -> dict[str, str]:
    """Run protoc and return each generated file's text by its path below ``memory``."""
    protos = sorted(str(path) for path in CONTRACT.glob("pillion/memory/v1/*.proto"))
    well_known = Path(protoc.__file__).parent / "_proto"
    code = protoc.main(
        [
            "protoc",
            f"--proto_path={CONTRACT}",
            f"--proto_path={well_known}",
            f"--python_out={into}",
            f"--pyi_out={into}",
            f"--grpc_python_out={into}",
            *protos,
        ]
    )
    if code != 0:
        raise SystemExit(code)
    made = {"__init__.py": '"""The contract by version."""\n'}
    made["v1/__init__.py"] = '"""Stubs of pillion.memory.v1."""\n'
    base = into / "pillion" / "memory"
    for path in sorted(base.rglob("*.py*")):
        text = MOVED.sub(r"\1 pillion_proto.memory", path.read_text(encoding="utf-8"))
        name = path.relative_to(base).as_posix()
        if name.endswith("_pb2_grpc.py") and "Stub" not in text:
            continue  # a file without a service
        made[name] = text
    return made


def main() -> int:
    """Write the stubs; with ``--check`` say which committed ones differ."""
    with tempfile.TemporaryDirectory() as scratch:
        made = generate(Path(scratch))
    if "--check" in sys.argv[1:]:
        there = {
            path.relative_to(STUBS).as_posix(): path.read_text(encoding="utf-8")
            for path in STUBS.rglob("*.py*")
            if "__pycache__" not in path.parts
        }
        stale = sorted(name for name in made | there if made.get(name) != there.get(name))
        for name in stale:
            print(f"stale: {STUBS.relative_to(ROOT)}/{name}: run `make gen` and commit it")
        return 1 if stale else 0
    for name, text in made.items():
        target = STUBS / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
