"""The extra `load` and the dependency group of the same name, from which its lock is made, are the same."""

from __future__ import annotations

import re
import tomllib

from tests.support.places import ROOT


def test_the_extra_and_the_group_of_its_lock_are_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["optional-dependencies"]["load"] == project["dependency-groups"]["load"]


def test_the_lock_has_both_engines_for_the_oldest_python_and_no_address() -> None:
    lock = (ROOT / "requirements-load.lock").read_text()
    assert {"jax", "jaxlib", "numpy"} <= set(re.findall(r"^(\w+)==.*python_full_version < '3\.11'", lock, re.M))
    assert "://" not in lock
