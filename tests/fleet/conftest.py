"""The smallest fleet repository without a problem (in `smallest/`), and a way to copy it with something changed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
collect_ignore = ["smallest"]
SMALLEST = Path(__file__).parent / "smallest"
Write = Callable[[Mapping[str, "str | None"]], Path]


@pytest.fixture
def fleet_with(tmp_path: Path) -> Write:
    """Write the smallest fleet with some files changed, added, or (None) left out; return its root."""
    root = tmp_path / "fleet"
    shutil.copytree(SMALLEST, root, ignore=shutil.ignore_patterns("__pycache__"))

    def write(changes: Mapping[str, str | None]) -> Path:
        for name, text in changes.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        return root

    return write


@pytest.fixture(scope="session")
def example() -> Path:
    """The example fleet: this repository itself."""
    return Path(__file__).parents[2]
