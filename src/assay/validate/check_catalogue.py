"""The catalogue of a fleet's checks: subject, phases, fault, consequences, inputs and must-fail cases of each.

It is read from the suites' source, the specs and the recordings, without running a check. `format_*` write it as a
page of Markdown and as text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from assay.declare.repository.tree import MAX_FILE_BYTES, WorkingFolder
from assay.declare.spec_values_read_by_checks import CheckInputs, read_check_inputs
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.policy_response import respond_to_fault
from assay.validate.must_fail_recordings import read_must_fail_cases
from assay.validate.runs.subjects import PART_KINDS, list_declared_checks

PAGE_COMMAND = "assay suites list --format markdown"
PAGE_COLUMNS = ("Check", "Of", "Phases", "Fault", "Follows", "Reads", "Fails on")


@frozen
class CheckDescription:
    """One check. `says` is its docstring; `follows` gives by state what a failure leads to.

    `limits` are the limits that it compares numbers with, `reads` what else it reads of the specs, `fails_on` the names
    of the cases that must make it fail.
    """

    check: str
    """The id of the check."""
    says: str
    subject: str
    """What it judges: node, or a kind of part, or rack, fabric."""
    phases: tuple[str, ...]
    """The phases that run it."""
    stage: str
    """Whether its outcomes decide, or are only observed."""
    active: bool
    """Whether it loads the hardware."""
    report_only: bool
    """Whether no lifecycle state asks for it: it counts in runs that people start."""
    valid_hours: float | None
    """The greatest age of the evidence of a pass, in hours; null if only the state that requires it limits the age."""
    fault: str
    """The fault class that a failure means; "" if none is named."""
    severity: str
    """How serious that fault is; "" without a fault."""
    follows: Mapping[str, str]
    limits: tuple[str, ...]
    reads: tuple[str, ...]
    fails_on: tuple[str, ...]


def describe_checks(fleet: Fleet) -> list[CheckDescription]:
    """Return every declared check, by file and name. Raises AssayError where the recordings cannot be read."""
    tree = WorkingFolder(fleet.root)
    inputs, docstrings = read_check_inputs(tree), dict(_read_docstrings(tree))
    cases = read_must_fail_cases(fleet.root / "suites" / "recordings")
    descriptions = [
        _describe_check(
            fleet,
            check,
            docstrings.get(check.id, ""),
            inputs.get(check.id),
            [case.name for case in cases.get(check.id, ())],
        )
        for check in list_declared_checks(fleet)
    ]
    return sorted(descriptions, key=lambda description: description.check)


def describe_modules(fleet: Fleet) -> dict[str, str]:
    """Return the docstring of each suite's module, by file."""
    tree = WorkingFolder(fleet.root)
    return {file: " ".join((ast.get_docstring(module) or "").split()) for file, module in _parse_suites(tree)}


def _describe_check(
    fleet: Fleet, check: CheckDeclaration, docstring: str, inputs: CheckInputs | None, cases: list[str]
) -> CheckDescription:
    treatment = fleet.fault_catalog.find_treatment(check.fault) if check.fault and fleet.fault_catalogs else None
    return CheckDescription(
        check=check.id,
        says=docstring,
        subject=check.subject,
        phases=tuple(check.phases),
        stage=check.stage,
        active=check.active,
        report_only=check.report_only,
        valid_hours=check.valid_hours,
        fault=check.fault,
        severity=treatment.severity if treatment else "",
        follows=dict(_consequences(fleet, check)),
        limits=tuple(sorted(inputs.limits)) if inputs else (),
        reads=tuple(_other_inputs(inputs)) if inputs else (),
        fails_on=tuple(cases),
    )


def _consequences(fleet: Fleet, check: CheckDeclaration) -> Iterator[tuple[str, str]]:
    """Yield, for each state that watches or requires a phase of the check, what a failure leads to there."""
    if check.is_observe_only or check.subject not in ("node", *PART_KINDS):
        return
    for policy in fleet.policies.values():
        for name, state in policy.states.items():
            if set(state.watch) & set(check.phases):
                if check.fault:
                    known = fleet.fault_catalog.find_treatment(check.fault)
                    treatment = (known.severity, known.blame, known.remedy)
                    yield name, str(respond_to_fault(policy, name, check.fault, *treatment, in_use=True))
            elif {requirement.phase for requirement in state.requires} & set(check.phases):
                yield name, f"to {state.fail_to}" if state.fail_to else "stays, ticket"


def _other_inputs(inputs: CheckInputs) -> Iterator[str]:
    """Yield what a check reads of the specs besides limits."""
    yield from (f"spec.{path}".rstrip(".") for path in sorted(inputs.spec))
    yield from (f"profile.{path}".rstrip(".") for path in sorted(inputs.profile))
    yield from (f"{argument}.declared.{path}" for argument, path in sorted(inputs.declared))
    if "bundle" in inputs.fixtures:
        yield "the firmware bundle"


def _read_docstrings(tree: WorkingFolder) -> Iterator[tuple[str, str]]:
    for file, module in _parse_suites(tree):
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{file}::{node.name}", " ".join((ast.get_docstring(node) or "").split())


def _parse_suites(tree: WorkingFolder) -> Iterator[tuple[str, ast.Module]]:
    """Yield the suites that can be parsed; `assay check` reports the others."""
    for file in tree.files("suites"):
        name = Path(file).name
        if name.startswith("test_") and name.endswith(".py"):
            try:
                yield file, ast.parse(tree.read(file, MAX_FILE_BYTES))
            except (OSError, SyntaxError, ValueError):
                continue


PAGE_HEAD = f"""# Checks

<!-- Generated by `{PAGE_COMMAND}`. Change the suites, the specs or the recordings, then generate it again. -->

{{count}} checks. Each check is a function in `suites/` and an entry in `specs/checks/`. The columns:

- *Of*: the subject that the check judges, such as a node, a GPU or a fabric.
- *Phases*: the named groups of checks to which the check belongs. States of the policy require or repeat phases.
- *Follows*: the effect of a failed check on a node, for each state of the policy. Examples are the next state or a
  ticket. "Stays" means that the node keeps its state. Checks of a rack, fabric, switch or rail move no node.
- *Reads*: the readings, limits and spec fields that the check uses.
- *Fails on*: changed recordings of a good node on which the check must fail. `assay suites verify` proves this.
"""


def format_catalogue_markdown(checks: Sequence[CheckDescription], modules: Mapping[str, str]) -> str:
    """Return the page. `modules` gives the docstring of each suite's module, by file."""
    lines = [PAGE_HEAD.format(count=len(checks))]
    for file, of_file in groupby(checks, key=lambda check: check.check.partition("::")[0]):
        rows = (_row(_cells(check)) for check in of_file)
        lines += [f"## {file.removeprefix('suites/')}", "", modules.get(file, ""), ""]
        lines += [_row(PAGE_COLUMNS), _row(["---"] * len(PAGE_COLUMNS)), *rows, ""]
    return "\n".join(lines).rstrip() + "\n"


def format_catalogue_text(checks: Sequence[CheckDescription]) -> str:
    """Return the catalogue for a terminal: four or five lines for each check."""
    lines = []
    for check in checks:
        about = [f"each {check.subject}", " ".join(check.phases), *_marks(check)]
        lines += [f"{check.check}", f"    {check.says}", f"    {', '.join(about)}"]
        if check.fault:
            consequences = _format_consequences(check.follows) or "nothing follows"
            lines.append(f"    {check.fault} ({check.severity}): {consequences}")
        lines.append(f"    must fail on: {'; '.join(check.fails_on) or 'NOTHING: no recording proves it'}")
    return "\n".join([*lines, f"{len(checks)} checks"])


def _cells(check: CheckDescription) -> Iterator[str]:
    name = check.check.partition("::")[2]
    yield f"`{name}`: {check.says}" + "".join(f" **{mark}.**" for mark in _marks(check))
    yield check.subject.replace("_", " ")
    yield ", ".join(check.phases)
    yield f"`{check.fault}`, {check.severity}" if check.fault else "–"
    yield _format_consequences(check.follows) or "–"
    yield ", ".join(f"`{name}`" for name in (*(f"limits.{limit}" for limit in check.limits), *check.reads)) or "–"
    yield "; ".join(check.fails_on) or "**nothing**"


def _marks(check: CheckDescription) -> list[str]:
    marks = {
        "loads the hardware": check.active,
        "only observes": check.stage == "observe",
        "for the report only": check.report_only,
        f"valid for {check.valid_hours or 0:g} h": check.valid_hours is not None,
    }
    return [mark for mark, holds in marks.items() if holds]


def _format_consequences(follows: Mapping[str, str]) -> str:
    """Return the consequences, with states that respond alike together."""
    states_of: dict[str, list[str]] = {}
    for state, response in follows.items():
        states_of.setdefault(response, []).append(state)
    return "; ".join(f"{', '.join(states)}: {response}" for response, states in states_of.items())


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
