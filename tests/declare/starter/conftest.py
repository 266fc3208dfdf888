"""A fleet to upgrade, and a new one on GitHub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.declare.starter.new_repository import create_repository
from tests.declare.starter.copied_fleet import CopiedFleet, lines
from tests.declare.starter.forge import Forge
from tests.declare.starter.github_api import serve_github
from tests.declare.starter.github_runner import GitHub


@pytest.fixture
def copied(tmp_path: Path) -> CopiedFleet:
    """A fleet with a file of ten lines, `suites/a.py`, and one of one line, `specs/b.yaml`, as assay copied them."""
    root = tmp_path / "fleet"
    root.mkdir()
    return CopiedFleet(root, {"suites/a.py": lines(*range(1000, 1010)), "specs/b.yaml": lines("b")})


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    """A new fleet on GitHub, whose first commit is its main branch."""
    (machines := tmp_path / "machines").mkdir()
    with serve_github() as api:
        yield GitHub(Forge(tmp_path, create_repository), machines, api)
