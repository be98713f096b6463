"""What every test shares: Hypothesis profiles, and the path to ``pillion_testing``.

Profiles (environment variable HYPOTHESIS_PROFILE):
  dev       a quick look while coding (the default)
  ci        what the build runs: the same examples each time, so that landing is no matter of luck
  thorough  for a night
Every other run has a random seed, shown in the header; ``--hypothesis-seed=N`` runs it again, and
a failure prints a ``@reproduce_failure`` line besides.

Helpers that several folders use live in ``tests/support/pillion_testing``. Modules are imported
with ``--import-mode=importlib``, which puts nothing on ``sys.path``; this file adds that one
folder, so that a test says ``from pillion_testing.service import ...``, and a process that a test
starts finds it as well.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import hypothesis
import hypothesis.core
from hypothesis import settings

SUPPORT = str(Path(__file__).parent / "support")
sys.path.insert(0, SUPPORT)
# For the processes that tests start and kill, too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (SUPPORT, os.environ.get("PYTHONPATH"))))

# Making examples is slow on a busy machine; that is no defect of a test.
SLOW = [hypothesis.HealthCheck.too_slow]

settings.register_profile(
    "dev",
    suppress_health_check=SLOW,
    max_examples=40,
    stateful_step_count=20,
    deadline=None,
    print_blob=True,
)
settings.register_profile(
    "ci",
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=SLOW,
)
settings.register_profile(
    "thorough", max_examples=2000, stateful_step_count=60, deadline=None, print_blob=True
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
settings.load_profile(PROFILE)


def pytest_configure(config):
    if config.getoption("hypothesis_seed", None) is None:
        hypothesis.core.global_force_seed = random.SystemRandom().randrange(2**32)


def pytest_report_header(config):
    chosen = config.getoption("hypothesis_seed", None)
    seed = hypothesis.core.global_force_seed if chosen is None else chosen
    return f"hypothesis: profile {PROFILE}, run again with --hypothesis-seed={seed}"
