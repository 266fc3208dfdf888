"""What the options and ids of the command line select, known before any item is made.

Node options choose nodes; ids and --lf choose checks and subjects of a module; -k, -m and --deselect, as a person typed
them, choose subjects of a check. pytest itself first makes all of a module's items, and applies ids, -k and -m again to
the items, so whatever cannot be decided here is left in. Subjects are made once for all checks, and only those that an
id or `-k` selects.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import CheckSubject
from assay.model.specs.check_catalog import SUBJECT_KIND_OF_FIXTURE
from assay.model.text.lists import expand_node_set, suggest_names
from assay.validate.pytest_internals import Expression, KeywordMatcher, MarkMatcher
from assay.validate.runs.subjects import PART_KINDS, NodeSelection, list_node_subjects
from assay.validate.runs.typed_selection import TypedSelection

MAX_OPEN_WORDS = 6
"""Words of an expression that subjects may decide; each doubles the combinations to try."""


RequestedIds = Mapping[str, frozenset[str] | None]
"""Functions of a module by name, each with the ids of the requested subjects; None stands for all of them."""


@frozen
class CommandLineId:
    """One argument, `suites/test_x.py::test_y[h100-a/n0003]`, split as pytest splits it."""

    path: Path
    names: tuple[str, ...]
    subject: str | None

    @classmethod
    def parse(cls, text: str, start: Path) -> CommandLineId:
        """Read an argument that was given in the folder `start`."""
        base, bracket, rest = text.partition("[")
        path, *names = base.split("::")
        # os.path.abspath follows no links, as pytest does not
        return cls(Path(os.path.abspath(start / path)), tuple(names), rest.removesuffix("]") if bracket else None)  # noqa: PTH100


def find_requested_ids(config: pytest.Config, module: Path) -> RequestedIds | None:
    """Return what the command line requests of a module; None for everything, or where that cannot be decided."""
    if config.getoption("pyargs"):
        return None
    arguments = [CommandLineId.parse(text, config.invocation_params.dir) for text in config.args]
    matching = [argument for argument in arguments if argument.path == module or argument.path in module.parents]
    if not matching or any(len(argument.names) != 1 for argument in matching):
        return None
    requested: dict[str, frozenset[str] | None] = {}
    for argument in matching:
        (name,) = argument.names
        more = None if argument.subject is None else frozenset({argument.subject})
        known = requested.get(name, frozenset())
        requested[name] = None if more is None or known is None else known | more
    return requested


@lru_cache(8)
def read_parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a check by name. Several callers read those of the check that is being collected."""
    return inspect.signature(function).parameters


def find_subject_kind(function: Callable[..., Any]) -> str:
    """Return the kind of subject that a check's arguments name, "" where they name none."""
    arguments = read_parameters(function)
    return next((kind for argument, kind in SUBJECT_KIND_OF_FIXTURE.items() if argument in arguments), "")


def select_nodes(fleet: Fleet, config: pytest.Config) -> NodeSelection:
    """Return the nodes that the options select. Raises AssayError for a name that does not exist."""
    names = _parse_names(config.getoption("--assay-node"), fleet.nodes, "node")
    pools = _parse_names(config.getoption("--assay-pool"), (node.pool for node in fleet.nodes.values()), "pool")
    racks = _parse_names(config.getoption("--assay-rack"), (node.rack for node in fleet.nodes.values()), "rack")
    nodes = tuple(
        name
        for name in ([name for name in fleet.nodes if name in names] if names else fleet.nodes)
        if (not pools or fleet.nodes[name].pool in pools) and (not racks or fleet.nodes[name].rack in racks)
    )
    shard, shard_count = _parse_shard(config.getoption("--assay-shard") or "1/1")
    return NodeSelection(fleet, nodes, shard, shard_count)


def _parse_names(texts: list[str], known: Iterable[str], kind: str) -> set[str]:
    requested = {name for text in texts for name in _split_names(text) if name}
    existing = set(known) if requested else set()
    for name in sorted(requested - existing):
        fix = suggest_names(name, existing, f"`assay status` lists every {kind}")
        raise AssayError(f"the inventory has no {kind} {name!r}", fix=fix)
    return requested


def _split_names(text: str) -> Sequence[str]:
    """Return the names of a list with commas, or of nodes as ClusterShell folds them: `n[01-16]`."""
    try:
        return expand_node_set(text)
    except ValueError:
        return text.split(",")


def _parse_shard(text: str) -> tuple[int, int]:
    shard, _, count = text.partition("/")
    if shard.isdecimal() and count.isdecimal() and 1 <= int(shard) <= int(count):
        return int(shard), int(count)
    raise AssayError(f"--assay-shard {text} is no shard", fix="write it as 2/4: the second of four")


@dataclass(frozen=True)
class KeywordPattern:
    """The words of `-k` that a check's own names leave open, and the combinations for which the expression is true."""

    words: tuple[str, ...]
    holds: frozenset[tuple[bool, ...]]

    def matches(self, subject: str) -> bool:
        """Return whether the expression is true for a subject id, given in lower case."""
        return tuple(word in subject for word in self.words) in self.holds

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The words that every matching subject has."""
        return tuple(word for at, word in enumerate(self.words) if all(truths[at] for truths in self.holds))


ANY_SUBJECT = KeywordPattern((), frozenset({()}))
NO_SUBJECT_FITS = KeywordPattern((), frozenset())


class ExpressionFilter:
    """The -k and -m of one session, applied to checks. A test compares the results with pytest's own."""

    def __init__(self, typed: TypedSelection) -> None:
        self._names, self._marks = _compile_expression(typed.keyword), _compile_expression(typed.marks)
        self._deselected = typed.deselected

    def pattern_of(self, example: pytest.Item) -> KeywordPattern:
        """Return which subjects of a check -k and -m select.

        `example` is an item of the check without a subject, named `test_x[`.
        """
        if not self._admits(example.iter_markers()):
            return NO_SUBJECT_FITS
        return _find_open_words(self._names, KeywordMatcher.from_item(example)) if self._names else ANY_SUBJECT

    def leaves_out(self, item: pytest.Item) -> bool:
        """Return whether -k, -m or --deselect leaves out an item."""
        return (
            bool(self._deselected and item.nodeid.startswith(self._deselected))
            or not self._admits(item.iter_markers())
            or (self._names is not None and not self._names.evaluate(KeywordMatcher.from_item(item)))
        )

    def _admits(self, marks: Iterable[pytest.Mark]) -> bool:
        with suppress(pytest.UsageError):
            return self._marks is None or self._marks.evaluate(MarkMatcher.from_markers(marks))
        return True


def _compile_expression(text: str) -> Expression | None:
    """Return an expression; None for no text, or for one that is wrong, which pytest reports itself."""
    with suppress(SyntaxError):
        return Expression.compile(text.lstrip()) if text and text.strip() else None
    return None


def _find_open_words(expression: Expression, known: KeywordMatcher) -> KeywordPattern:
    words = sorted(expression.idents())
    open_words = [word for word in words if not known(word)]
    if len(open_words) > MAX_OPEN_WORDS or any(bracket in word for word in open_words for bracket in "[]"):
        return ANY_SUBJECT  # a word with a bracket may span the name and the subject
    holds = set()
    for truths in product((False, True), repeat=len(open_words)):
        values = dict.fromkeys(words, True) | dict(zip(open_words, truths, strict=True))
        try:
            is_true = expression.evaluate(lambda name, /, **_: values[name])  # noqa: B023 — called before the next turn
        except pytest.UsageError:
            return ANY_SUBJECT
        if is_true:
            holds.add(truths)
    return KeywordPattern(tuple(word.lower() for word in open_words), frozenset(holds))


def find_last_failed(config: pytest.Config, nodes: Collection[str]) -> Mapping[Path, RequestedIds]:
    """Return the failures of the last session on these nodes, by module; a module that is left out is not narrowed.

    Empty without --lf, and where pytest would run more than these: with -k or -m, or if none is on these nodes.
    """
    if not config.getoption("lf", default=False) or config.option.keyword or config.option.markexpr:
        return {}
    known = config.cache.get("cache/lastfailed", {}) if config.cache is not None else {}
    failed = [CommandLineId.parse(text, config.rootpath) for text in known]
    undecided = {failure.path for failure in failed if len(failure.names) != 1 or failure.subject is None}
    by_module: dict[Path, dict[str, frozenset[str] | None]] = {}
    for failure in failed:
        if failure.path in undecided or failure.subject is None:
            continue
        scope, _, rest = failure.subject.partition("/")
        name = rest.partition("/")[0]
        if name in nodes or scope == "fabric" or name.startswith("rack-"):
            subjects = by_module.setdefault(failure.path, {})
            subjects[failure.names[0]] = (subjects.get(failure.names[0]) or frozenset()) | {failure.subject}
    return by_module


class NamedSubject(NamedTuple):
    """A subject, its id, and the node that it is or belongs to ("" for racks and fabrics)."""

    subject: CheckSubject
    id: str
    node: str


class SelectedSubjects:
    """The subjects of a selection."""

    def __init__(self, selection: NodeSelection) -> None:
        self._selection, self._fleet = selection, selection.fleet
        self._by_kind: dict[str, list[NamedSubject]] = {}
        self._by_pattern: dict[tuple[str, KeywordPattern], list[NamedSubject]] = {}
        self._nodes_by_word: dict[str, dict[str, Node]] = {}

    def of_kind(self, kind: str) -> list[NamedSubject]:
        """Return all subjects of a kind."""
        if kind not in self._by_kind:
            subjects = self._selection.subjects(kind)
            self._by_kind[kind] = [NamedSubject(subject, str(subject), node) for subject, node in subjects]
        return self._by_kind[kind]

    def matching(self, kind: str, pattern: KeywordPattern) -> list[NamedSubject]:
        """Return the subjects of a kind whose ids match a pattern."""
        if pattern == ANY_SUBJECT:
            return self.of_kind(kind)
        if not pattern.holds:
            return []
        if (kind, pattern) not in self._by_pattern:
            among = self._candidates(kind, pattern) if kind in ("node", *PART_KINDS) else self.of_kind(kind)
            matching = [subject for subject in among if pattern.matches(subject.id.lower())]
            self._by_pattern[kind, pattern] = matching
        return self._by_pattern[kind, pattern]

    def with_ids(self, kind: str, ids: Iterable[str]) -> list[NamedSubject]:
        """Return the subjects of a kind that have these ids, in fleet order."""
        wanted = set(ids)
        if kind not in ("node", *PART_KINDS):
            return [subject for subject in self.of_kind(kind) if subject.id in wanted]
        names = {parts[1] for parts in (subject_id.split("/") for subject_id in wanted) if len(parts) > 1}
        nodes = [self._fleet.nodes[name] for name in self._own_node_names if name in names]
        return [subject for subject in self._list_on_nodes(nodes, kind) if subject.id in wanted]

    @cached_property
    def _own_node_names(self) -> Sequence[str]:
        return self._selection.own_nodes()

    def _candidates(self, kind: str, pattern: KeywordPattern) -> list[NamedSubject]:
        """Return the subjects on nodes where each needed word is in the node's id, or may be in a part's."""
        if kind in self._by_kind:
            return self._by_kind[kind]
        nodes: Collection[Node] = self._own_nodes
        for word in pattern.needed:
            if "/" in word[1:]:
                continue  # may span the node's id and the part's
            if word not in self._nodes_by_word:
                self._nodes_by_word[word] = {node.name: node for name, node in self._lower_case_ids if word in name}
            having = self._nodes_by_word[word]
            specs = set()  # those whose parts may have the word in their part of an id
            for name, spec in self._fleet.node_specs.items() if kind != "node" else ():
                if any(word in f"/{slot}".lower() for slot in spec.slot_names(kind)):
                    specs.add(name)
            if specs:
                nodes = [node for node in nodes if node.name in having or node.spec in specs]
            elif nodes is self._own_nodes:
                nodes = having.values()
            else:
                nodes = [node for node in nodes if node.name in having]
        return self._list_on_nodes(nodes, kind)

    @cached_property
    def _own_nodes(self) -> list[Node]:
        return [self._fleet.nodes[name] for name in self._own_node_names]

    @cached_property
    def _lower_case_ids(self) -> list[tuple[str, Node]]:
        return [(f"{node.pool}/{node.name}".lower(), node) for node in self._own_nodes]

    def _list_on_nodes(self, nodes: Iterable[Node], kind: str) -> list[NamedSubject]:
        subjects = (
            (subject, node.name) for node in nodes for subject in list_node_subjects(self._fleet, node.name, kind)
        )
        return [NamedSubject(subject, str(subject), node) for subject, node in subjects]
