"""Set-up of all tests: helpers are importable, and random tests are the same in every run."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

import folders  # noqa: F401

settings.register_profile(
    "gossamer",
    deadline=None,
    derandomize=True,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("gossamer")
