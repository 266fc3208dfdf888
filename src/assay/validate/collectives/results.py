"""The results of collectives as lines of JSON, of a pair or of a group: one node alone, or many together.

`{"round": "M1", "pair": ["n1", "n2"], "seconds": 0.5, "wrong": 0, …}`; a group has `nodes`, not `pair`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from assay.model.errors import AssayError
from assay.model.facts import fact, shown

Pair = tuple[str, str]
PairVerdict = Literal["good", "slow", "wrong", "hung", "died", "unknown"]
EVIDENCE_ENDINGS = ("ok", "deadline", "died")
"""Endings that say something about a pair's hardware. Any other, such as `preempted`, is no evidence."""


@fact
class PairResult:
    """How a collective between two nodes ended: `ok`, `deadline`, `died`, or anything else that is no evidence.

    `rail` is None if all rails were measured together. `wrong` is None if the results were not checked. `note` is what
    a person may want to read, such as the last line of the output.
    """

    round: str
    pair: Pair
    ended: str
    rail: int | None = shown(omit=True, default=None)
    seconds: float | None = shown(omit=True, default=None)
    gb_s: float | None = shown(omit=True, default=None)
    wrong: int | None = shown(omit=True, default=None)
    note: str = shown(omit=True, default="")

    @property
    def speed(self) -> float | None:
        """A figure that is larger for a faster pair, None if none was measured."""
        return self.gb_s or (1 / self.seconds if self.seconds else None)

    @property
    def key(self) -> tuple[str, Pair, int | None]:
        """What tells this result from the others of a search."""
        return self.round, make_pair(*self.pair), self.rail


def make_pair(a: str, b: str) -> Pair:
    """Return a pair in the one order that it has in sets."""
    return (a, b) if a <= b else (b, a)


def parse_result(line: Mapping[str, Any]) -> PairResult:
    """Return the result of a parsed line. Raises ValueError that says which field is wrong."""
    pair = line.get("pair")
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(name, str) for name in pair)):
        raise ValueError("`pair` is not a list of two node names")
    if pair[0] == pair[1]:
        raise ValueError(f"`pair` names {pair[0]} twice")
    rail = parse_count(line, "rail")
    return PairResult(pair=(pair[0], pair[1]), rail=rail, **_parse_ending(line))


def _parse_ending(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that pairs and groups share. Raises ValueError that says which one is wrong."""
    ended, name = line.get("ended"), line.get("round")
    if not isinstance(ended, str) or not ended:
        raise ValueError("`ended` is missing: ok, deadline, died, or why nothing was measured")
    if isinstance(name, bool) or not isinstance(name, (str, int)) or name == "":
        raise ValueError("`round` is missing")
    seconds, gb_s = (parse_positive(line, field) for field in ("seconds", "gb_s"))
    wrong, note = parse_count(line, "wrong"), str(line.get("note", ""))
    return {"round": str(name), "ended": ended, "seconds": seconds, "gb_s": gb_s, "wrong": wrong, "note": note}


def parse_positive(line: Mapping[str, Any], name: str) -> float | None:
    """Return a number above 0, None if it is not there. Raises ValueError for anything else."""
    value = line.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"`{name}` is {value!r}, not a number above 0")
    return float(value)


def parse_count(line: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number from 0, None if it is not there. Raises ValueError for anything else."""
    value = line.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"`{name}` is {value!r}, not a whole number from 0")
    return value


Group = tuple[str, ...]


class GroupRound(NamedTuple):
    """A round of groups that run at the same time: G1 … G3 for nodes alone, W1 … for all together, S1 … for blocks."""

    name: str
    groups: tuple[Group, ...]


@fact
class GroupResult:
    """How a collective of these nodes ended. The fields are those of a pair's result."""

    round: str
    nodes: Group
    ended: str
    seconds: float | None = shown(omit=True, default=None)
    gb_s: float | None = shown(omit=True, default=None)
    wrong: int | None = shown(omit=True, default=None)
    note: str = shown(omit=True, default="")

    @property
    def speed(self) -> float | None:
        """A figure that is larger for a faster group, None if none was measured."""
        return self.gb_s or (1 / self.seconds if self.seconds else None)

    @property
    def key(self) -> tuple[str, Group]:
        """What tells this result from the others of a search."""
        return self.round, self.nodes


def parse_group_result(line: Mapping[str, Any]) -> GroupResult:
    """Return the result of a parsed line. Raises ValueError that says which field is wrong."""
    nodes = line.get("nodes")
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, str) for node in nodes):
        raise ValueError("`nodes` is not a list of node names")
    if len(set(nodes)) != len(nodes):
        raise ValueError("`nodes` names a node twice")
    return GroupResult(nodes=tuple(nodes), **_parse_ending(line))


def read_results(lines: Iterable[str], where: str = "") -> tuple[list[PairResult], list[GroupResult]]:
    """Return the results of pairs and of groups in JSON lines. Raises AssayError with the line that is none."""
    pairs, groups = list[PairResult](), list[GroupResult]()
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            if not isinstance(line, dict):
                raise ValueError("the line is no JSON object")
            if "pair" in line:
                pairs.append(parse_result(line))
            elif "collectives" in line:
                continue  # the header
            elif "nodes" in line:
                groups.append(parse_group_result(line))
            else:
                raise ValueError("`pair` is missing")
        except ValueError as error:
            fix = "each line is one result: see docs/collectives.md, “Results”"
            raise AssayError(f"this is no result: {error}", where=f"{where}:{number}", fix=fix) from None
    return pairs, groups
