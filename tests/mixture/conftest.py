"""What the tests of mixtures share."""

import pytest

from gossamer.mixture import roster


@pytest.fixture
def small_roster(monkeypatch):
    """The roster changes early, and explores from the start."""
    monkeypatch.setattr(roster, "LIMITS", ((96, 12), (128, 8), (160, 6), (192, 4)))
    monkeypatch.setattr(roster, "FIRST_YOUNG", 128)
    monkeypatch.setattr(roster, "FIRST_EXPLORERS", 160)
    monkeypatch.setattr(roster, "EXPLORE", 64)
    monkeypatch.setattr(roster, "TRIAL", 96)
    monkeypatch.setattr(roster, "MEMORY", 96)
    monkeypatch.setattr(roster, "PROVEN", 32)
    monkeypatch.setattr(roster, "GUESS", 96)
