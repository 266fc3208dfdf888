"""`requirements.lock` names all that its packages ask for: pip refuses a lock with a hole, in a fresh clone only."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PINS = re.compile(r"^([A-Za-z0-9._-]+)==", re.M)


def needed_packages() -> set[tuple[str, str]]:
    """Each package with each of its extras that the project needs on this machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    del extras["load"]  # it has a lock of its own, for nodes
    waiting = [
        (Requirement(text), "")
        for texts in (project["project"]["dependencies"], project["dependency-groups"]["dev"], *extras.values())
        for text in texts
        if not text.startswith("assay-fleet[")  # as it was installed; its extras are read here
    ]
    needed: set[tuple[str, str]] = set()
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in {(name, each) for each in ("", *requirement.extras)} - needed:
            needed.add(wanted)
            try:
                waiting.extend((Requirement(text), wanted[1]) for text in requires(name) or [])
            except PackageNotFoundError:
                continue
    return needed


def test_the_lock_has_each_package_that_is_needed() -> None:
    locked = {canonicalize_name(name) for name in PINS.findall((ROOT / "requirements.lock").read_text())}
    missing = sorted({name for name, _ in needed_packages()} - locked)
    assert not missing, f"requirements.lock lacks {missing}: run make lock"
