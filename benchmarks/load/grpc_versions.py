"""Processor time of one echo RPC under two versions of grpcio, in turns: why grpcio is pinned.

Makes an environment a version in a temporary folder, from the package index in use.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import harness

REQUEST_BYTES = 1558
RESPONSE_BYTES = 2529
CLIENT = """
import json, sys, threading, time, grpc
target, calls, callers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
payload = bytes({request})
channel = grpc.insecure_channel(target)
echo = channel.unary_unary("/echo/Echo")
for _ in range(500):
    echo(payload)
def work():
    for _ in range(calls // callers):
        echo(payload)
threads = [threading.Thread(target=work) for _ in range(callers)]
start = time.perf_counter()
[t.start() for t in threads]
[t.join() for t in threads]
print(json.dumps(time.perf_counter() - start))
"""


def environment(folder: Path, version: str) -> Path:
    """Return the interpreter of a fresh environment with that grpcio."""
    uv = harness.ROOT / ".tools" / "bin" / "uv"
    place = folder / version
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, place], check=True)
    python = place / "bin" / "python"
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", python, f"grpcio=={version}"], check=True
    )
    return python


def measure(python: Path, folder: Path, calls: int, callers: int) -> dict[str, float]:
    """Return the server's processor time a call, and calls a second, of one round."""
    socket = folder / "s"
    response = folder / "response"
    response.write_bytes(bytes(RESPONSE_BYTES))
    server = subprocess.Popen(
        [
            python,
            harness.ROOT / "sidecar" / "src" / "pillion" / "bench" / "echo.py",
            socket,
            response,
        ],
    )
    try:
        while not socket.exists():
            server.wait(0.02) if server.poll() is not None else psutil.Process().cpu_percent(0.02)
        process = psutil.Process(server.pid)
        before = sum(process.cpu_times()[:2])
        done = subprocess.run(
            [
                python,
                "-c",
                CLIENT.format(request=REQUEST_BYTES),
                f"unix:{socket}",
                str(calls),
                str(callers),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
        spent = sum(process.cpu_times()[:2]) - before
    finally:
        server.terminate()
        server.wait()
    seconds = json.loads(done.stdout)
    return {"cpu_us": 1e6 * spent / (calls + 500), "calls_per_second": calls / seconds}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=["1.76.0", "1.85.3"])
    parser.add_argument("--calls", type=int, default=8000)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pillion-grpc-") as scratch:
        folder = Path(scratch)
        pythons = {version: environment(folder, version) for version in arguments.versions}
        rounds: dict[str, list[dict[str, float]]] = {version: [] for version in pythons}
        for _ in range(arguments.rounds):
            for version, python in pythons.items():
                rounds[version].append(measure(python, folder, arguments.calls, arguments.callers))
    results = {
        version: {
            name: round(sorted(one[name] for one in found)[len(found) // 2], 1)
            for name in ("cpu_us", "calls_per_second")
        }
        for version, found in rounds.items()
    }
    harness.record("grpc_versions", results, keep=arguments.keep)


if __name__ == "__main__":
    main()
