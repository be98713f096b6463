"""Install the built wheels into an empty environment and run the README's quick start there.

The quick start is what a reader would type: the README's fenced blocks whose info string ends in
``quickstart``. ``sh`` blocks run in one shell in order, ``python`` blocks by that environment's
interpreter; the server is started as the README says and stopped at the end. The quick start's
search must find what it is there to find, by meaning.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = ROOT / ".tools" / "bin" / "uv"
BLOCK = re.compile(r"^```(sh|python) quickstart\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SEARCH = re.compile(r"^pillion search .*$", re.MULTILINE)
INSTALL = "pip install"
FOUND = "Mira is allergic to peanuts."
CHECK = f"""
import json
hits = json.load(open("found.json"))["hits"]
relevance = [hit["parts"].get("relevance", 0.0) for hit in hits]
print("relevance:", relevance)
assert hits and hits[0]["memory"]["text"] == {FOUND!r}, "the search finds something else first"
assert relevance[0] > max([0.0, *relevance[1:]]), "the search finds it, but not by meaning"
"""


def script_of(readme: str) -> str:
    """Return one shell script of the quick start's blocks, without its install line."""
    parts = ["set -eu"]
    for language, body in BLOCK.findall(readme):
        if language == "python":
            parts.append(f"python - <<'PYTHON'\n{body}PYTHON")
            continue
        lines = [line for line in body.splitlines() if not line.startswith(INSTALL)]
        parts.append("\n".join(lines))
    if len(parts) == 1:
        raise SystemExit("README.md has no quickstart blocks: the check would check nothing")
    searches = SEARCH.findall("\n".join(parts))
    if len(searches) != 1:
        raise SystemExit(f"README.md's quick start has {len(searches)} searches and not one")
    parts.append(f"{searches[0]} --parts --json > found.json")
    parts.append(f"python - <<'PYTHON'{CHECK}PYTHON")
    # The README starts the server in the background; it must not outlive the check.
    parts.insert(1, "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT")
    return "\n".join(parts) + "\n"


def main() -> int:
    """Install and run; the exit code is the script's."""
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if not wheels:
        raise SystemExit("dist/ has no wheels: run `make wheels`")
    with tempfile.TemporaryDirectory(prefix="pillion-wheels-") as scratch:
        environment = Path(scratch) / "venv"
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, environment], check=True)
        python = environment / "bin" / "python"
        # The same versions as in development; the wheels themselves are named as files.
        pins = Path(scratch) / "constraints.txt"
        locked = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
        found = [line.rstrip(" \\") for line in locked.splitlines() if re.match(r"[\w.-]+==", line)]
        pins.write_text("\n".join(found) + "\n", encoding="utf-8")
        requirements = [
            f"{wheel.name.split('-')[0].replace('_', '-')} @ {wheel.as_uri()}"
            for wheel in wheels
            if not wheel.name.startswith("pillion-")
        ]
        (own,) = (wheel for wheel in wheels if wheel.name.startswith("pillion-"))
        requirements.append(f"pillion[e5] @ {own.as_uri()}")
        subprocess.run(
            [
                UV,
                "pip",
                "install",
                "--quiet",
                "--python",
                python,
                "--constraint",
                pins,
                *requirements,
            ],
            check=True,
        )
        work = Path(scratch) / "work"
        work.mkdir()
        script = script_of((ROOT / "README.md").read_text(encoding="utf-8"))
        path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        bash = shutil.which("bash") or "sh"
        done = subprocess.run(
            [bash, "-c", script],
            cwd=work,
            env=os.environ | {"PATH": path},
            check=False,
            timeout=600,
        )
    print("the wheels work" if done.returncode == 0 else "the quick start failed on the wheels")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
