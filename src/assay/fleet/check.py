"""The book of rules: every code, why it matters, and the function that finds it.

Finds every mistake in a fleet repository: what does not fit a schema, and what makes no sense.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from assay.fleet.repository_draft import RepositoryDraft
from assay.fleet.validation_problems import FleetProblem, ProblemSeverity
from assay.model.specs.spec_document import SpecDocument

RULE_MODULES = (
    "dangling_names",
    "inventory_nodes",
    "firmware_bundles",
    "measurement_limits",
    "declared_checks",
    "known_issues_and_gates",
    "policies_and_profiles",
    "fault_rules",
    "rack_layout",
    "fabric_designs",
    "secrets_and_signers",
    "transports_schedulers_monitoring",
    "schedule_specs",
)

FilePosition = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """One mistake at file, line and column."""

    place: FilePosition
    message: str
    fix: str


RuleFunction = Callable[[RepositoryDraft], Iterable[RuleFinding]]


@dataclass(frozen=True, slots=True)
class CheckRule:
    """One code. `find` is None for what the reader itself notices while it loads."""

    code: str
    title: str
    why: str
    severity: ProblemSeverity
    find: RuleFunction | None = None
    needs: tuple[type[SpecDocument], ...] = ()

    def problems(self, draft: RepositoryDraft) -> Iterable[FleetProblem]:
        """Yield what this rule finds in a fleet; nothing where specs that it `needs` could not be read."""
        if self.find is None or (self.needs and not draft.is_complete(*self.needs)):
            return
        for found in self.find(draft):
            yield FleetProblem(*found.place, self.code, self.severity, found.message, found.fix)


_RULES: dict[str, CheckRule] = {}


def _register(entry: CheckRule) -> None:
    if entry.code in _RULES:
        raise ValueError(f"{entry.code} is given twice: {_RULES[entry.code].title}, {entry.title}")
    _RULES[entry.code] = entry


def rule(
    code: str, title: str, *, why: str, severity: ProblemSeverity = "error", needs: tuple[type[SpecDocument], ...] = ()
) -> Callable[[RuleFunction], RuleFunction]:
    """Enter the function below as the one that finds `code`. It `needs` kinds whose specs it misses by name."""

    def enter(find: RuleFunction) -> RuleFunction:
        _register(CheckRule(code, title, why, severity, find, needs))
        return find

    return enter


def load_rules() -> dict[str, CheckRule]:
    """Return every rule by its code."""
    for theme in RULE_MODULES:
        importlib.import_module(f"assay.fleet.rules.{theme}")
    return dict(sorted(_RULES.items()))


for _code, _title, _why in (
    (
        "ASY0001",
        "a file is no readable YAML",
        "What cannot be read promises nothing: duplicate keys, tags, bad text.",
    ),
    ("ASY0002", "a spec of no known kind", "A misspelt kind would leave a whole document without effect."),
    ("ASY0003", "a spec does not fit its schema", "An unknown key or a wrong type is a promise that nothing keeps."),
    ("ASY0004", "a file that contradicts itself", "Each entry fits its schema, but not all can be meant at once."),
    ("ASY0005", "a spec extends one that is not there", "Half of what it promises would be missing."),
    ("ASY0006", "specs that extend each other", "Nobody could say which of them comes first."),
    ("ASY0010", "an inventory file is not in Ansible's format", "Ansible skips such entries with a warning, or fails."),
    ("ASY0011", "there is no inventory", "Without nodes there is no fleet."),
    ("ASY0012", "a node's variables do not fit", "Every node needs its place, its serial number and what it must be."),
    ("ASY0056", "a unit that is not known", "GB/s and Gb/s differ by eight: what is almost a unit is none."),
    ("ASY0013", "a node without a spec", "Nothing can be validated on a node that promises nothing."),
    ("ASY0048", "an artifact without a digest", "Any bytes of that name would be flashed."),
    ("ASY0077", "a fault that no rule answers", "It would be seen, and nobody could say what follows."),
    ("ASY0110", "a list of switches that cannot be read", "The fabric's switches would have no place and no GUID."),
    ("ASY0173", "a known issue that excuses everything", "Nothing in the fleet could fail any more."),
    ("ASY0088", "a policy that names no state", "A node sent there would be nowhere."),
    ("ASY0190", "a deadline before the state can be left", "Every node would miss it, however well it is."),
    ("ASY0191", "a limit of a policy that can never be reached", "It promises a bound that nothing holds."),
):
    _register(CheckRule(_code, _title, _why, "error"))


@dataclass(frozen=True)
class CheckReport:
    """What was looked at, and what is wrong with it, in order of file and line."""

    problems: list[FleetProblem]
    nodes: int
    specs: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong now; a notice tells of what will be."""
        return all(problem.severity == "notice" for problem in self.problems)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, as `assay check --format json` prints it."""
        return {"problems": [problem.as_json() for problem in self.problems], "nodes": self.nodes}


def check_repository(root: Path, now: datetime | None = None) -> CheckReport:
    """Look at the repository at `root` as of `now` (the machine's own where none is given). Mistakes never raise."""
    draft = RepositoryDraft(root.absolute(), now=now)
    found = list(draft.problems)
    for rule in load_rules().values():
        found += rule.problems(draft)
    return CheckReport(sorted(set(found)), len(draft.hosts), len(draft.specs))


def list_problems(root: Path, now: datetime | None = None) -> list[FleetProblem]:
    """Return every mistake in the repository at `root`, in order of file and line."""
    return check_repository(root, now).problems
