"""The command that runs one pair: the words of a site's template, and how its output becomes a result."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.collectives.pair_results import Pair, PairResult, parse_result
from assay.model.errors import AssayError
from assay.model.reading import ReadingTree, parse_reading
from assay.probe.load_tools.nccl_tests import parse_all_reduce, parse_report
from assay.probe.load_tools.tool_call import quote_ending

PLACEHOLDER = re.compile(r"\{(\w+)\}")
NEEDED = {"a", "b"}
KNOWN = {"a", "b", "rail", "out", "deadline", "round"}


@dataclass(frozen=True, slots=True)
class PairTask:
    """One run of a pair: all rails together, or one `rail`."""

    round: str
    pair: Pair
    rail: int | None = None

    def make_result(self, ended: str, note: str = "", **figures: Any) -> PairResult:
        """Return the result of this run."""
        return PairResult(self.round, self.pair, ended, self.rail, note=note, **figures)


@dataclass(frozen=True, slots=True)
class CommandTemplate:
    """The words of the command, with `{a}` and `{b}` for the nodes, and `{rail}`, `{out}`, `{deadline}`, `{round}`.

    `{out}` is a fresh file for nccl-tests' `-J`.
    """

    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> CommandTemplate:
        """Return the template. Raises AssayError for unknown placeholders, and where one of the nodes is missing."""
        fix = "for example: srun --nodelist={a},{b} --nodes=2 all_reduce_perf -b 1G -e 1G -g 8 -c 1 -J {out}"
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise AssayError(f"the command cannot be split into words: {error}", where="--command", fix=fix) from None
        found = set(PLACEHOLDER.findall(text))
        if unknown := sorted(found - KNOWN):
            raise AssayError(f"the command has the unknown placeholder {{{unknown[0]}}}", where="--command", fix=fix)
        if missing := sorted(NEEDED - found):
            raise AssayError(f"the command does not say where {{{missing[0]}}} goes", where="--command", fix=fix)
        return cls(words)

    @property
    def has_rails(self) -> bool:
        """Whether the command runs on one rail."""
        return any("{rail}" in word for word in self.words)

    @property
    def has_report(self) -> bool:
        """Whether the command writes a file."""
        return any("{out}" in word for word in self.words)

    def fill(self, task: PairTask, out: Path, deadline_s: float) -> list[str]:
        """Return the words for one run."""
        a, b = task.pair
        values = {"a": a, "b": b, "rail": str(task.rail), "out": str(out), "round": task.round}
        values["deadline"] = f"{deadline_s:g}"
        return [PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word) for word in self.words]


def read_output(task: PairTask, exit_code: int, output: str, report: Path) -> PairResult:
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


def _read_own_line(task: PairTask, output: str) -> PairResult | None:
    """Return the result in the last line that is a JSON object with `ended`, None without one."""
    for line in reversed(output.splitlines()):
        if line.startswith("{") and '"ended"' in line:
            try:
                found: Mapping[str, Any] = json.loads(line)
                return parse_result(
                    {**found, "round": task.round, "pair": list(task.pair)}
                    | ({"rail": task.rail} if task.rail is not None else {})
                )
            except ValueError as error:
                return task.make_result("unreadable", str(error))
    return None
