"""The catalogue of a fleet's checks: what each asserts, of what, when, what follows, what it reads, what it fails on.

Read from the suites' source, the specs and the recordings; no check runs for it.

The catalogue of checks as a page of Markdown and as text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from assay.fleet.check_inputs import CheckInputs, read_check_inputs
from assay.fleet.repository_tree import MAX_FILE_BYTES, WorkingFolder
from assay.harness.selection.declared_checks import PART_KINDS, list_declared_checks
from assay.harness.suite_verification.recordings import read_must_fail_cases
from assay.lifecycle.policy_response import respond_to_fault
from assay.model.fleet import Fleet
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.model.specs.lifecycle_policy import LifecyclePolicy, LifecycleState


@dataclass(frozen=True, slots=True)
class CheckDescription:
    """One check. `says` is its docstring; `follows` says per state what a failure leads to there.

    `limits` are the limits that it holds numbers to, `reads` what else of the specs it reads; `fails_on` the names of
    the cases that must make it fail.
    """

    check: str
    says: str
    subject: str
    phases: tuple[str, ...]
    stage: str
    active: bool
    report_only: bool
    valid_hours: float | None
    fault: str
    severity: str
    follows: Mapping[str, str]
    limits: tuple[str, ...]
    reads: tuple[str, ...]
    fails_on: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def describe_checks(fleet: Fleet) -> list[CheckDescription]:
    """Return every declared check, by file and name. Raises Trouble where the recordings cannot be read."""
    tree = WorkingFolder(fleet.root)
    reads, words = read_check_inputs(tree), dict(_docstrings(tree))
    cases = read_must_fail_cases(fleet.root / "suites" / "recordings")
    found = [
        _describe_check(
            fleet, one, words.get(one.id, ""), reads.get(one.id), [case.name for case in cases.get(one.id, ())]
        )
        for one in list_declared_checks(fleet)
    ]
    return sorted(found, key=lambda one: one.check)


def describe_modules(fleet: Fleet) -> dict[str, str]:
    """Return the first sentence of each suite's own docstring, by file."""
    tree = WorkingFolder(fleet.root)
    return {file: _sentence(ast.get_docstring(module)) for file, module in _parse_suites(tree)}


def _describe_check(
    fleet: Fleet, check: CheckDeclaration, says: str, reads: CheckInputs | None, cases: list[str]
) -> CheckDescription:
    known = fleet.fault_catalog.find_treatment(check.fault) if check.fault and fleet.fault_catalogs else None
    return CheckDescription(
        check=check.id,
        says=says,
        subject=check.subject,
        phases=tuple(check.phases),
        stage=check.stage,
        active=check.active,
        report_only=check.report_only,
        valid_hours=check.valid_hours,
        fault=check.fault,
        severity=known.severity if known else "",
        follows=dict(_consequences(fleet, check)),
        limits=tuple(sorted(reads.limits)) if reads else (),
        reads=tuple(_other_inputs(reads)) if reads else (),
        fails_on=tuple(cases),
    )


def _consequences(fleet: Fleet, check: CheckDeclaration) -> Iterator[tuple[str, str]]:
    """Yield, for each state that asks for a phase of the check, what its failure leads to there."""
    if check.is_observe_only or check.subject not in ("node", *PART_KINDS):
        return
    for policy in fleet.policies.values():
        for name, state in policy.states.items():
            if set(state.watch) & set(check.phases):
                if check.fault:
                    yield name, _answer_to_fault(fleet, policy, name, check.fault)
            elif {want.phase for want in state.requires} & set(check.phases):
                yield name, _consequence_of_requirement(state)


def _answer_to_fault(fleet: Fleet, policy: LifecyclePolicy, state: str, fault: str) -> str:
    known = fleet.fault_catalog.find_treatment(fault)
    return str(respond_to_fault(policy, state, fault, known.severity, known.blame, known.remedy, in_use=True))


def _consequence_of_requirement(state: LifecycleState) -> str:
    return f"to {state.fail_to}" if state.fail_to else "stays, ticket"


def _other_inputs(reads: CheckInputs) -> Iterator[str]:
    """Yield what a check reads of the specs beside limits."""
    yield from (f"spec.{path}".rstrip(".") for path in sorted(reads.spec))
    yield from (f"profile.{path}".rstrip(".") for path in sorted(reads.profile))
    yield from (f"{argument}.declared.{path}" for argument, path in sorted(reads.declared))
    if "bundle" in reads.fixtures:
        yield "the firmware bundle"


def _docstrings(tree: WorkingFolder) -> Iterator[tuple[str, str]]:
    for file, module in _parse_suites(tree):
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{file}::{node.name}", " ".join((ast.get_docstring(node) or "").split())


def _parse_suites(tree: WorkingFolder) -> Iterator[tuple[str, ast.Module]]:
    """Yield the suites that are Python; `assay check` tells of others."""
    for file in tree.files("suites"):
        name = Path(file).name
        if name.startswith("test_") and name.endswith(".py"):
            try:
                yield file, ast.parse(tree.read(file, MAX_FILE_BYTES))
            except (OSError, SyntaxError, ValueError):
                continue


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


PAGE_COMMAND = "assay suites list --format markdown"
PAGE_HEAD = f"""# Checks

<!-- Made by `{PAGE_COMMAND}`; change the suites, the specs or the recordings, then make it again. -->

{{count}} checks. Each is a function in `suites/` and an entry in `specs/checks/`, and `assay suites verify` runs it
against what must make it fail. *Follows* says what a failure leads to in each state of the policy that asks for the
check, on a node in use: the answer to the fault where the state watches, where the node goes (or that it stays) where
the state requires. What is judged of a rack, a fabric, a switch or a rail moves no node by itself.
"""
PAGE_COLUMNS = ("Check", "Of", "Phases", "Fault", "Follows", "Reads", "Fails on")


def format_catalogue_markdown(found: Sequence[CheckDescription], modules: Mapping[str, str]) -> str:
    """Return the page. `modules` says of each suite's file what it is about."""
    lines = [PAGE_HEAD.format(count=len(found))]
    for file, some in groupby(found, key=lambda one: one.check.partition("::")[0]):
        lines += [f"## {file.removeprefix('suites/')}", "", modules.get(file, ""), ""]
        lines += [_row(PAGE_COLUMNS), _row(["---"] * len(PAGE_COLUMNS)), *(_row(_cells(one)) for one in some), ""]
    return "\n".join(lines).rstrip() + "\n"


def format_catalogue_text(found: Sequence[CheckDescription]) -> str:
    """Return the catalogue for a terminal: two lines a check."""
    lines = []
    for one in found:
        about = [f"each {one.subject}", " ".join(one.phases), *_marks(one)]
        lines += [f"{one.check}", f"    {one.says}", f"    {', '.join(about)}"]
        if one.fault:
            lines.append(f"    {one.fault} ({one.severity}): {_format_consequences(one.follows) or 'nothing follows'}")
        lines.append(f"    must fail on: {'; '.join(one.fails_on) or 'NOTHING — it proves nothing'}")
    return "\n".join([*lines, f"{len(found)} checks"])


def _cells(one: CheckDescription) -> Iterator[str]:
    name = one.check.partition("::")[2]
    yield f"`{name}`: {one.says}" + "".join(f" **{mark}.**" for mark in _marks(one))
    yield one.subject.replace("_", " ")
    yield ", ".join(one.phases)
    yield f"`{one.fault}`, {one.severity}" if one.fault else "–"
    yield _format_consequences(one.follows) or "–"
    yield ", ".join(f"`{name}`" for name in (*(f"limits.{limit}" for limit in one.limits), *one.reads)) or "–"
    yield "; ".join(one.fails_on) or "**nothing**"


def _marks(one: CheckDescription) -> list[str]:
    marks = {
        "loads the hardware": one.active,
        "only observes": one.stage == "observe",
        "for the report only": one.report_only,
        f"valid for {one.valid_hours or 0:g} h": one.valid_hours is not None,
    }
    return [mark for mark, holds in marks.items() if holds]


def _format_consequences(follows: Mapping[str, str]) -> str:
    """Return what follows, states that answer alike together."""
    alike: dict[str, list[str]] = {}
    for state, answer in follows.items():
        alike.setdefault(answer, []).append(state)
    return "; ".join(f"{', '.join(states)}: {answer}" for answer, states in alike.items())


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
