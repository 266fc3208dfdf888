"""Where the tests lie, and what they are about."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
"""The repository, which is the example fleet too."""
SMALLEST = TESTS / "data/smallest"
"""The smallest fleet repository without a problem."""
