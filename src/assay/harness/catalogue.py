"""The catalogue of a fleet's checks: what each asserts, of what, when, what follows, what it reads, what it fails on.

Read from the suites' source, the specs and the recordings; no check runs for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.fleet.reads import Reads, read_checks
from assay.fleet.tree import MOST, Folder
from assay.harness.declared import PARTS, checks
from assay.harness.recordings import must_fail
from assay.lifecycle.answers import answer_to
from assay.model.checks import Check
from assay.model.fleet import Fleet
from assay.model.policy import LifecyclePolicy, State


@dataclass(frozen=True, slots=True)
class Described:
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


def described(fleet: Fleet) -> list[Described]:
    """Return every declared check, by file and name. Raises Trouble where the recordings cannot be read."""
    tree = Folder(fleet.root)
    reads, words = read_checks(tree), dict(_docstrings(tree))
    cases = must_fail(fleet.root / "suites" / "recordings")
    found = [
        _described(fleet, one, words.get(one.id, ""), reads.get(one.id), [case.name for case in cases.get(one.id, ())])
        for one in checks(fleet)
    ]
    return sorted(found, key=lambda one: one.check)


def modules(fleet: Fleet) -> dict[str, str]:
    """Return the first sentence of each suite's own docstring, by file."""
    tree = Folder(fleet.root)
    return {file: _sentence(ast.get_docstring(module)) for file, module in _parsed(tree)}


def _described(fleet: Fleet, check: Check, says: str, reads: Reads | None, cases: list[str]) -> Described:
    known = fleet.catalog.treatment(check.fault) if check.fault and fleet.faults else None
    return Described(
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
        follows=dict(_follows(fleet, check)),
        limits=tuple(sorted(reads.limits)) if reads else (),
        reads=tuple(_others(reads)) if reads else (),
        fails_on=tuple(cases),
    )


def _follows(fleet: Fleet, check: Check) -> Iterator[tuple[str, str]]:
    """Yield, for each state that asks for a phase of the check, what its failure leads to there."""
    if check.observed or check.subject not in ("node", *PARTS):
        return
    for policy in fleet.policies.values():
        for name, state in policy.states.items():
            if set(state.watch) & set(check.phases):
                if check.fault:
                    yield name, _answered(fleet, policy, name, check.fault)
            elif {want.phase for want in state.requires} & set(check.phases):
                yield name, _kept(state)


def _answered(fleet: Fleet, policy: LifecyclePolicy, state: str, fault: str) -> str:
    known = fleet.catalog.treatment(fault)
    return str(answer_to(policy, state, fault, known.severity, known.blame, known.remedy, in_use=True))


def _kept(state: State) -> str:
    return f"to {state.fail_to}" if state.fail_to else "stays, ticket"


def _others(reads: Reads) -> Iterator[str]:
    """Yield what a check reads of the specs beside limits."""
    yield from (f"spec.{path}".rstrip(".") for path in sorted(reads.spec))
    yield from (f"profile.{path}".rstrip(".") for path in sorted(reads.profile))
    yield from (f"{argument}.declared.{path}" for argument, path in sorted(reads.declared))
    if "bundle" in reads.fixtures:
        yield "the firmware bundle"


def _docstrings(tree: Folder) -> Iterator[tuple[str, str]]:
    for file, module in _parsed(tree):
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{file}::{node.name}", " ".join((ast.get_docstring(node) or "").split())


def _parsed(tree: Folder) -> Iterator[tuple[str, ast.Module]]:
    """Yield the suites that are Python; `assay check` tells of others."""
    for file in tree.files("suites"):
        name = Path(file).name
        if name.startswith("test_") and name.endswith(".py"):
            try:
                yield file, ast.parse(tree.read(file, MOST))
            except (OSError, SyntaxError, ValueError):
                continue


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())
