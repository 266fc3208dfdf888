"""The smallest fleet repository without a problem, copied with something changed; and the example fleet."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.places import ROOT, SMALLEST

Write = Callable[[Mapping[str, "str | None"]], Path]


@pytest.fixture
def fleet_with(tmp_path: Path) -> Write:
    """Write the smallest fleet with some files changed, added, or (None) left out; return its root.

    A Link becomes a link. A `.gitignore` makes the fleet a repository of git.
    """
    from tests.declare.rules.cases.case import Link

    root = tmp_path / "fleet"
    shutil.copytree(SMALLEST, root, ignore=shutil.ignore_patterns("__pycache__"))

    def write(changes: Mapping[str, str | None]) -> Path:
        for name, text in changes.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            elif isinstance(text, Link):
                path.symlink_to(text)
            else:
                path.write_text(text)
        if ".gitignore" in changes:
            subprocess.run(["git", "init", "--quiet", root], check=True)
        return root

    return write


@pytest.fixture(scope="session")
def example() -> Path:
    """The example fleet: this repository itself."""
    return ROOT
