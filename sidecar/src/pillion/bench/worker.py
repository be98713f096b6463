"""A client process: reads a job, says "ready", waits for "go", sends, and prints what became of it.

Usage: ``python -m pillion.bench.worker``, with a job and the data as one line of JSON on stdin.
"""

from __future__ import annotations

import gc
import json
import sys

from pillion.bench.data import Data
from pillion.bench.sender import Job, Sender


def main() -> None:
    """Do one job."""
    told = json.loads(sys.stdin.readline())
    sender = Sender(Job(**told["job"]), Data(**told["data"]))
    sender.connect()
    gc.collect()
    gc.freeze()  # what is prepared is not looked through again while calls are timed
    _say("ready")
    sys.stdin.readline()
    tally = sender.send()
    sender.close()
    _say(json.dumps(tally.as_dict()))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
