"""The command of one run of a collective, of a pair, perhaps on one rail, or of a group.

It is made of the words of a site's template; its output becomes a result.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.reading import ReadingTree, parse_reading
from assay.node.load_tools.nccl import parse_all_reduce, parse_report
from assay.node.load_tools.tool_call import quote_ending
from assay.validate.collectives.results import (
    Group,
    GroupResult,
    GroupRound,
    Pair,
    PairResult,
    parse_group_result,
    parse_result,
)
from assay.validate.collectives.rounds import PairRound

PLACEHOLDER = re.compile(r"\{(\w+)\}")
COMMON = frozenset({"out", "deadline", "round", "python", "gpus"})
NEEDED: Mapping[RunKind, frozenset[str]] = {
    "pair": frozenset({"a", "b"}),
    "alone": frozenset({"node"}),
    "together": frozenset({"nodes"}),
}
"""The placeholders without which a command would not say where it runs."""
OPTIONAL: Mapping[RunKind, frozenset[str]] = {
    "pair": frozenset({"rail", "adapter"}),
    "alone": frozenset(),
    "together": frozenset({"count"}),
}
EXAMPLES: Mapping[RunKind, str] = {
    "pair": "srun --nodelist={a},{b} --nodes=2 all_reduce_perf -b 1G -e 1G -g 8 -c 1 -J {out}",
    "alone": "srun --nodelist={node} --nodes=1 all_reduce_perf -b 1G -e 1G -g 8 -c 1 -J {out}",
    "together": "srun --nodelist={nodes} --nodes={count} all_reduce_perf -b 1G -e 1G -g 8 -c 1 -J {out}",
}


@frozen
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

    def parse_line(self, line: Mapping[str, Any]) -> PairResult:
        """Return the result of a line of JSON that the program printed. Raises ValueError if it is none."""
        rail = {} if self.rail is None else {"rail": self.rail}
        return parse_result({**line, "round": self.round, "pair": list(self.pair), **rail})


@frozen
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

    def parse_line(self, line: Mapping[str, Any]) -> GroupResult:
        """Return the result of a line of JSON that the program printed. Raises ValueError if it is none."""
        return parse_group_result({**line, "round": self.round, "nodes": list(self.nodes)})


CollectiveTask = PairTask | GroupTask
TaskResult = PairResult | GroupResult


def list_tasks(planned: PairRound | GroupRound, rails: Sequence[int]) -> list[CollectiveTask]:
    """Return the runs of a round: one for each group, or for each pair, and rail if rails are measured apart."""
    if isinstance(planned, GroupRound):
        return [GroupTask(planned.name, group) for group in planned.groups]
    return [PairTask(planned.name, pair, rail) for pair in planned.pairs for rail in (rails or (None,))]


RunKind = Literal["pair", "alone", "together"]


@frozen
class CommandTemplate:
    """The words of a command with placeholders: `{a}` and `{b}` for a pair, `{node}` or `{nodes}` for a group.

    `{out}` is a fresh file for nccl-tests' `-J`. `adapters` are the names that `{adapter}` becomes, by rail. `gpus` are
    the numbers of GPUs by node, of which `{gpus}` becomes the least. `taken` are texts in the output that say that
    somebody else took the nodes.
    """

    words: tuple[str, ...]
    adapters: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    gpus: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def has_rails(self) -> bool:
        """Whether the command runs on one rail."""
        return any("{rail}" in word or "{adapter}" in word for word in self.words)

    @property
    def has_report(self) -> bool:
        """Whether the command writes a file."""
        return any("{out}" in word for word in self.words)

    def fill(self, task: CollectiveTask, out: Path, deadline_s: float) -> list[str]:
        """Return the words for one run."""
        values = {**task.words, "out": str(out), "deadline": f"{deadline_s:g}", "python": sys.executable}
        if isinstance(task, PairTask) and task.rail is not None and task.rail < len(self.adapters):
            values["adapter"] = self.adapters[task.rail]
        if known := [self.gpus[node] for node in task.nodes if node in self.gpus]:
            values["gpus"] = str(min(known))
        return [PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), word) for word in self.words]

    def find_taker(self, output: str) -> str:
        """Return the text in the output that says that somebody took the nodes, "" if there is none."""
        return next((text for text in self.taken if text in output), "")


def check_words(kind: RunKind, words: Sequence[str], where: str) -> None:
    """Raise AssayError for unknown placeholders, and where a node is missing."""
    names = {name for word in words for name in PLACEHOLDER.findall(word)}
    fix = f"for example: {EXAMPLES[kind]}"
    if unknown := sorted(names - NEEDED[kind] - OPTIONAL[kind] - COMMON):
        raise AssayError(f"the command has the unknown placeholder {{{unknown[0]}}}", where=where, fix=fix)
    if missing := sorted(NEEDED[kind] - names):
        raise AssayError(f"the command does not say where {{{missing[0]}}} goes", where=where, fix=fix)


def read_output(task: CollectiveTask, exit_code: int, output: str, report: Path) -> TaskResult:
    """Return the result of a command that ended by itself: our own line, nccl-tests' report, or its table.

    A report that says something is believed whatever the exit code: nccl-tests ends with an error where results are
    wrong. Without one, an error code means that the collective died.
    """
    own = _read_own_line(task, output)
    if own is not None:
        return own
    tree = _read_nccl_tests(output, report)
    bandwidth, wrong = (parse_reading(tree[name]) for name in ("bus_bandwidth_gb_s", "wrong"))
    gb_s = float(bandwidth.value) if bandwidth and bandwidth.kind == "value" else 0.0
    count = int(wrong.value) if wrong and wrong.kind == "value" else None
    note = quote_ending(output).removeprefix("; ")
    if count:
        return task.make_result("ok", gb_s=gb_s or None, wrong=count)
    if exit_code != 0:
        return task.make_result("died", f"exit code {exit_code}; {note}")
    if not gb_s:
        return task.make_result("unreadable", note)
    return task.make_result("ok", gb_s=gb_s, wrong=count)


def _read_nccl_tests(output: str, report: Path) -> ReadingTree:
    for path in (report, report.with_name(f"{report.name}.0")):  # it writes FILE.0 if FILE exists
        try:
            return parse_report(path.read_text(errors="replace"))
        except (OSError, ValueError):
            continue
    return parse_all_reduce(output)


def _read_own_line(task: CollectiveTask, output: str) -> TaskResult | None:
    """Return the result in the last line that is a JSON object with `ended`, None without one."""
    for line in reversed(output.splitlines()):
        if line.startswith("{") and '"ended"' in line:
            try:
                fields: Mapping[str, Any] = json.loads(line)
                return task.parse_line(fields)
            except ValueError as error:
                return task.make_result("unreadable", str(error))
    return None
