"""One run of a collective: of a pair, perhaps on one rail, or of a group. What it fills into a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.validate.collectives.group_results import Group, GroupResult, GroupRound, parse_group_result
from assay.validate.collectives.matchings import PairRound
from assay.validate.collectives.pair_results import Pair, PairResult, parse_result


@dataclass(frozen=True, slots=True)
class PairTask:
    """One run of a pair: all rails together, or one `rail`."""

    round: str
    pair: Pair
    rail: int | None = None

    @property
    def nodes(self) -> Sequence[str]:
        """The nodes that take part."""
        return self.pair

    @property
    def words(self) -> Mapping[str, str]:
        """The words that replace placeholders."""
        return {"a": self.pair[0], "b": self.pair[1], "rail": str(self.rail), "round": self.round}

    def make_result(self, ended: str, note: str = "", **figures: Any) -> PairResult:
        """Return the result of this run."""
        return PairResult(self.round, self.pair, ended, self.rail, note=note, **figures)

    def parse_line(self, found: Mapping[str, Any]) -> PairResult:
        """Return the result of a line of JSON that the program printed. Raises ValueError if it is none."""
        rail = {} if self.rail is None else {"rail": self.rail}
        return parse_result({**found, "round": self.round, "pair": list(self.pair), **rail})


@dataclass(frozen=True, slots=True)
class GroupTask:
    """One run of a group: one node alone, or many together."""

    round: str
    nodes: Group

    @property
    def words(self) -> Mapping[str, str]:
        """The words that replace placeholders."""
        many = {"nodes": ",".join(self.nodes), "count": str(len(self.nodes)), "round": self.round}
        return many | {"node": self.nodes[0]}

    def make_result(self, ended: str, note: str = "", **figures: Any) -> GroupResult:
        """Return the result of this run."""
        return GroupResult(self.round, self.nodes, ended, note=note, **figures)

    def parse_line(self, found: Mapping[str, Any]) -> GroupResult:
        """Return the result of a line of JSON that the program printed. Raises ValueError if it is none."""
        return parse_group_result({**found, "round": self.round, "nodes": list(self.nodes)})


CollectiveTask = PairTask | GroupTask
TaskResult = PairResult | GroupResult


def list_tasks(planned: PairRound | GroupRound, rails: Sequence[int]) -> list[CollectiveTask]:
    """Return the runs of a round: one for each group, or for each pair, and rail if rails are measured apart."""
    if isinstance(planned, GroupRound):
        return [GroupTask(planned.name, group) for group in planned.groups]
    return [PairTask(planned.name, pair, rail) for pair in planned.pairs for rail in (rails or (None,))]
