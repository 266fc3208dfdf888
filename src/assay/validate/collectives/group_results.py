"""The result of a collective in a group: one node alone, or many together. A line of JSON with `nodes`, not `pair`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.model.errors import AssayError
from assay.validate.collectives.pair_results import parse_count, parse_positive

Group = tuple[str, ...]


class GroupRound(NamedTuple):
    """A round of groups that run at the same time: G1 … G3 for nodes alone, W1 … for all together, S1 … for blocks."""

    name: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class GroupResult:
    """How a collective of these nodes ended. The fields are those of a pair's result."""

    round: str
    nodes: Group
    ended: str
    seconds: float | None = None
    gb_s: float | None = None
    wrong: int | None = None
    note: str = ""

    @property
    def speed(self) -> float | None:
        """A figure that is larger for a faster group, None if none was measured."""
        return self.gb_s or (1 / self.seconds if self.seconds else None)

    @property
    def key(self) -> tuple[str, Group]:
        """What tells this result from the others of a search."""
        return self.round, self.nodes

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are known."""
        optional = {"seconds": self.seconds, "gb_s": self.gb_s, "wrong": self.wrong, "note": self.note or None}
        known = {name: value for name, value in optional.items() if value is not None}
        return {"round": self.round, "nodes": list(self.nodes), "ended": self.ended, **known}


def parse_group_result(line: Mapping[str, Any]) -> GroupResult:
    """Return the result of a parsed line. Raises ValueError that says which field is wrong."""
    nodes, ended, name = line.get("nodes"), line.get("ended"), line.get("round")
    if not isinstance(nodes, list) or not nodes or not all(isinstance(one, str) for one in nodes):
        raise ValueError("`nodes` is not a list of node names")
    if len(set(nodes)) != len(nodes):
        raise ValueError("`nodes` names a node twice")
    if not isinstance(ended, str) or not ended:
        raise ValueError("`ended` is missing: ok, deadline, died, or why the group was not measured")
    if not isinstance(name, str) or not name:
        raise ValueError("`round` is missing")
    seconds, gb_s = parse_positive(line, "seconds"), parse_positive(line, "gb_s")
    return GroupResult(name, tuple(nodes), ended, seconds, gb_s, parse_count(line, "wrong"), str(line.get("note", "")))


def read_group_results(lines: Iterable[str], where: str = "") -> Iterator[GroupResult]:
    """Yield the results of groups among JSON lines. Raises AssayError with the line's number."""
    for number, text in enumerate(lines, start=1):
        if '"nodes"' not in text:
            continue
        try:
            line = json.loads(text)
            if "collectives" not in line and "pair" not in line:
                yield parse_group_result(line)
        except ValueError as error:
            fix = "each line is one result: see docs/collectives.md, “Results”"
            raise AssayError(f"this is no result of a group: {error}", where=f"{where}:{number}", fix=fix) from None
