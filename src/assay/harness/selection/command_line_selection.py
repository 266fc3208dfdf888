"""What `-k` and `-m` leave of a check's subjects, told before their items are made.

pytest applies both again to the items, so whatever cannot be told here simply stays. Expressions and what they match
are pytest's own: a test holds this module to them.

Which checks of a module the ids on the command line ask for, known before any of its items is made.

Which nodes the options choose, and which subjects a check's arguments ask for.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import KeywordMatcher, MarkMatcher
from _pytest.mark.expression import Expression

from assay.harness.selection.declared_checks import PART_KINDS, NodeSelection
from assay.model.errors import AssayError
from assay.model.fleet import Fleet

RequestedIds = Mapping[str, frozenset[str] | None]
"""Functions of a module by name, each with the subjects that are asked for; None stands for all of them."""


@dataclass(frozen=True, slots=True)
class CommandLineId:
    """One argument, `suites/test_x.py::test_y[h100-a/n0003]`, as pytest takes it apart."""

    path: Path
    names: tuple[str, ...]
    subject: str | None

    @classmethod
    def parse(cls, text: str, start: Path) -> CommandLineId:
        """Read an argument that was given in the folder `start`."""
        base, bracket, rest = text.partition("[")
        path, *names = base.split("::")
        return cls(Path(os.path.abspath(start / path)), tuple(names), rest.removesuffix("]") if bracket else None)  # noqa: PTH100 — as pytest does, links stay


def find_requested_ids(config: pytest.Config, module: Path) -> RequestedIds | None:
    """Return what is asked for in a module, None for everything; what cannot be told is everything too."""
    if config.getoption("pyargs"):
        return None
    given = [CommandLineId.parse(text, config.invocation_params.dir) for text in config.args]
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


# The first of these among a check's arguments decides what it is repeated over.
SUBJECT_KIND_OF_FIXTURE = {
    **{part: part for part in PART_KINDS},
    "link": "hca",
    "node": "node",
    "bmc": "node",
    "rack": "rack",
    "whole_rack": "whole_rack",
}
SUBJECT_KIND_OF_FIXTURE |= {"switch": "switch", "rail": "rail"}
SUBJECT_KIND_OF_FIXTURE |= {"link_week": "hca", "switch_week": "switch", "rail_week": "rail", "fabric_week": "fabric"}
SUBJECT_KIND_OF_FIXTURE |= {"fabric": "fabric", "spec": "node", "limits": "node", "bundle": "node", "profile": "node"}


@lru_cache(8)
def read_parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return what a check asks for. The one that is collected is asked for several times."""
    return inspect.signature(function).parameters


def find_subject_kind(function: Callable[..., Any]) -> str:
    """Return the kind of subject that a check asks for, "" when it asks for none."""
    arguments = read_parameters(function)
    return next((kind for argument, kind in SUBJECT_KIND_OF_FIXTURE.items() if argument in arguments), "")


def select_nodes(fleet: Fleet, config: pytest.Config) -> NodeSelection:
    """Return the selection of --node, --pool, --rack and --shard. Raises Trouble for a name that does not exist."""
    names = _parse_names(config.getoption("--node"), fleet.nodes, "node")
    pools = _parse_names(config.getoption("--pool"), (node.pool for node in fleet.nodes.values()), "pool")
    racks = _parse_names(config.getoption("--rack"), (node.rack for node in fleet.nodes.values()), "rack")
    nodes = tuple(
        name
        for name in ([name for name in fleet.nodes if name in names] if names else fleet.nodes)
        if (not pools or fleet.nodes[name].pool in pools) and (not racks or fleet.nodes[name].rack in racks)
    )
    share, shares = _parse_shard(config.getoption("--shard") or "1/1")
    return NodeSelection(fleet, nodes, share, shares)


def _parse_names(given: list[str], known: Iterable[str], what: str) -> set[str]:
    wanted = {name for text in given for name in text.split(",") if name}
    existing = set(known) if wanted else set()
    for name in sorted(wanted - existing):
        near = get_close_matches(name, existing, n=3)
        fix = f"did you mean {' or '.join(near)}?" if near else f"see `assay status` for every {what}"
        raise AssayError(f"no {what} {name!r} in the inventory", fix=fix)
    return wanted


def _parse_shard(text: str) -> tuple[int, int]:
    share, _, shares = text.partition("/")
    if share.isdecimal() and shares.isdecimal() and 1 <= int(share) <= int(shares):
        return int(share), int(shares)
    raise AssayError(f"--shard {text} is no share", fix="write it as 2/4: the second of four")


MAX_OPEN_WORDS = 6
"""Words of an expression that subjects may decide; each doubles what has to be tried."""


@dataclass(frozen=True)
class KeywordPattern:
    """The words of `-k` that a check's own names leave open, and with which of them found the expression holds."""

    words: tuple[str, ...]
    holds: frozenset[tuple[bool, ...]]

    def matches(self, subject: str) -> bool:
        """Return whether a subject, in lower case, has the words that it must have and lacks those it must lack."""
        return tuple(word in subject for word in self.words) in self.holds

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The words that a subject must have, whatever the others are."""
        return tuple(word for at, word in enumerate(self.words) if all(found[at] for found in self.holds))


ANY_SUBJECT = KeywordPattern((), frozenset({()}))
NO_SUBJECT_FITS = KeywordPattern((), frozenset())


class ExpressionFilter:
    """The expressions of one session."""

    def __init__(self, config: pytest.Config) -> None:
        self._names = _compile_expression(config.getoption("keyword"))
        self._marks = _compile_expression(config.getoption("markexpr"))

    def pattern_of(self, example: pytest.Item) -> KeywordPattern:
        """Return what subjects of a check must be like.

        `example` is an item of the check whose name is `test_x[`, without a subject.
        """
        if not self._admits(example.iter_markers()):
            return NO_SUBJECT_FITS
        return _find_open_words(self._names, KeywordMatcher.from_item(example)) if self._names else ANY_SUBJECT

    def _admits(self, marks: Iterable[pytest.Mark]) -> bool:
        with suppress(pytest.UsageError):
            return self._marks is None or self._marks.evaluate(MarkMatcher.from_markers(marks))
        return True


def _compile_expression(text: str) -> Expression | None:
    """Return an expression, None where there is none or where pytest will say what is wrong with it."""
    with suppress(SyntaxError):
        return Expression.compile(text.lstrip()) if text and text.strip() else None
    return None


def _find_open_words(expression: Expression, known: KeywordMatcher) -> KeywordPattern:
    idents = sorted(expression.idents())
    free = [ident for ident in idents if not known(ident)]
    if len(free) > MAX_OPEN_WORDS or any(bracket in ident for ident in free for bracket in "[]"):
        return ANY_SUBJECT  # a word with a bracket may reach from the name into the subject
    holds = set()
    for found in product((False, True), repeat=len(free)):
        said = dict.fromkeys(idents, True) | dict(zip(free, found, strict=True))
        try:
            true = expression.evaluate(lambda name, /, **_: said[name])  # noqa: B023 — called here and now
        except pytest.UsageError:
            return ANY_SUBJECT
        if true:
            holds.add(found)
    return KeywordPattern(tuple(ident.lower() for ident in free), frozenset(holds))
