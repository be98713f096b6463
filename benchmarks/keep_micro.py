"""Keep what pytest-benchmark measured: ``keep_micro.py FILE.json`` writes one small run a module.

pytest-benchmark's own file holds every round; kept are the median, the least, and the figures that
a benchmark notes beside itself (ratios to a floor measured in the same run).
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import harness


def main() -> None:
    """Condense and keep."""
    measured = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["benchmarks"]
    by_module: dict[str, dict[str, Any]] = defaultdict(dict)
    for one in measured:
        module = Path(one["fullname"].partition("::")[0]).stem.removeprefix("test_")
        by_module[module][one["name"].removeprefix("test_")] = {
            "median_us": round(1e6 * one["stats"]["median"], 1),
            "min_us": round(1e6 * one["stats"]["min"], 1),
            **{
                name: round(value, 3) if isinstance(value, float) else value
                for name, value in one["extra_info"].items()
            },
        }
    for module, results in by_module.items():
        harness.record(f"micro_{module}", results, keep=True)


if __name__ == "__main__":
    main()
