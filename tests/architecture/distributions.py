"""What the distribution needs by `pyproject.toml`, and which modules that installs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]


@cache
def read_owners() -> list[tuple[str, set[str]]]:
    """Return each module that can be imported here, with its distributions."""
    return [(name, set(map(canonicalize_name, own))) for name, own in packages_distributions().items()]


def find_installed(requirements: Iterable[str]) -> set[str]:
    """Return the distributions that these requirements install, and what those need, as far as they are here."""
    found, waiting = set[str](), [Requirement(line) for line in requirements]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        with suppress(PackageNotFoundError):
            waiting += [Requirement(line) for line in requires(name) or []]
    return found


def find_modules(requirements: Iterable[str]) -> set[str]:
    """Return the top modules that these requirements install."""
    distributions = find_installed(requirements)
    return distributions | {name for name, own in read_owners() if distributions & own}
