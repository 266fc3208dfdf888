"""The catalogue of checks as a page of Markdown and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from assay.harness.catalogue import Described

COMMAND = "assay suites list --format markdown"
HEAD = f"""# Checks

<!-- Made by `{COMMAND}`; change the suites, the specs or the recordings, then make it again. -->

{{count}} checks. Each is a function in `suites/` and an entry in `specs/checks/`, and `assay suites verify` runs it
against what must make it fail. *Follows* says what a failure leads to in each state of the policy that asks for the
check, on a node in use: the answer to the fault where the state watches, where the node goes (or that it stays) where
the state requires. What is judged of a rack, a fabric, a switch or a rail moves no node by itself.
"""
COLUMNS = ("Check", "Of", "Phases", "Fault", "Follows", "Reads", "Fails on")


def as_markdown(found: Sequence[Described], modules: Mapping[str, str]) -> str:
    """Return the page. `modules` says of each suite's file what it is about."""
    lines = [HEAD.format(count=len(found))]
    for file, some in groupby(found, key=lambda one: one.check.partition("::")[0]):
        lines += [f"## {file.removeprefix('suites/')}", "", modules.get(file, ""), ""]
        lines += [_row(COLUMNS), _row(["---"] * len(COLUMNS)), *(_row(_cells(one)) for one in some), ""]
    return "\n".join(lines).rstrip() + "\n"


def as_text(found: Sequence[Described]) -> str:
    """Return the catalogue for a terminal: two lines a check."""
    lines = []
    for one in found:
        about = [f"each {one.subject}", " ".join(one.phases), *_marks(one)]
        lines += [f"{one.check}", f"    {one.says}", f"    {', '.join(about)}"]
        if one.fault:
            lines.append(f"    {one.fault} ({one.severity}): {_joined(one.follows) or 'nothing follows'}")
        lines.append(f"    must fail on: {'; '.join(one.fails_on) or 'NOTHING — it proves nothing'}")
    return "\n".join([*lines, f"{len(found)} checks"])


def _cells(one: Described) -> Iterator[str]:
    name = one.check.partition("::")[2]
    yield f"`{name}`: {one.says}" + "".join(f" **{mark}.**" for mark in _marks(one))
    yield one.subject.replace("_", " ")
    yield ", ".join(one.phases)
    yield f"`{one.fault}`, {one.severity}" if one.fault else "–"
    yield _joined(one.follows) or "–"
    yield ", ".join(f"`{name}`" for name in (*(f"limits.{limit}" for limit in one.limits), *one.reads)) or "–"
    yield "; ".join(one.fails_on) or "**nothing**"


def _marks(one: Described) -> list[str]:
    marks = {
        "loads the hardware": one.active,
        "only observes": one.stage == "observe",
        "for the report only": one.report_only,
        f"valid for {one.valid_hours or 0:g} h": one.valid_hours is not None,
    }
    return [mark for mark, holds in marks.items() if holds]


def _joined(follows: Mapping[str, str]) -> str:
    """Return what follows, states that answer alike together."""
    alike: dict[str, list[str]] = {}
    for state, answer in follows.items():
        alike.setdefault(answer, []).append(state)
    return "; ".join(f"{', '.join(states)}: {answer}" for answer, states in alike.items())


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
