"""A fleet to upgrade."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from copied_fleet import CopiedFleet, lines


@pytest.fixture
def copied(tmp_path: Path) -> CopiedFleet:
    """A fleet with a file of ten lines, `suites/a.py`, and one of one line, `specs/b.yaml`, as assay copied them."""
    root = tmp_path / "fleet"
    root.mkdir()
    return CopiedFleet(root, {"suites/a.py": lines(*range(1000, 1010)), "specs/b.yaml": lines("b")})
