"""Which checks of a module the ids on the command line ask for, known before any of its items is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

Names = Mapping[str, frozenset[str] | None]
"""Functions of a module by name, each with the subjects that are asked for; None stands for all of them."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, `suites/test_x.py::test_y[h100-a/n0003]`, as pytest takes it apart."""

    path: Path
    names: tuple[str, ...]
    subject: str | None

    @classmethod
    def of(cls, text: str, start: Path) -> Argument:
        """Read an argument that was given in the folder `start`."""
        base, bracket, rest = text.partition("[")
        path, *names = base.split("::")
        return cls(Path(os.path.abspath(start / path)), tuple(names), rest.removesuffix("]") if bracket else None)  # noqa: PTH100 — as pytest does, links stay


def asked(config: pytest.Config, module: Path) -> Names | None:
    """Return what is asked for in a module, None for everything; what cannot be told is everything too."""
    if config.getoption("pyargs"):
        return None
    given = [Argument.of(text, config.invocation_params.dir) for text in config.args]
    ours = [one for one in given if one.path == module or one.path in module.parents]
    if not ours or any(len(one.names) != 1 for one in ours):
        return None
    found: dict[str, frozenset[str] | None] = {}
    for one in ours:
        (name,) = one.names
        more = None if one.subject is None else frozenset({one.subject})
        known = found.get(name, frozenset())
        found[name] = None if more is None or known is None else known | more
    return found
