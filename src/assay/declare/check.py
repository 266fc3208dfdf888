"""Checks a fleet repository: schemas first, then the rules of RULE_MODULES and of installed plug-ins.

A rule is a function with `@rule`, whose docstring says why the mistake matters. A distribution adds rules with an entry
point of the group `assay.check_rules` that names a module of such functions.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from assay.declare.problems import FleetProblem, ProblemSeverity
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.yaml import ParseCache
from assay.model.errors import AssayError
from assay.model.facts import fact, frozen, internal
from assay.model.plugins import CHECK_RULES
from assay.model.specs.spec_document import SpecDocument

RULE_MODULES = (
    "assay.declare.rules.dangling_names",
    "assay.declare.rules.inventory",
    "assay.declare.rules.firmware_bundles",
    "assay.declare.rules.measurement_limits",
    "assay.declare.rules.checks",
    "assay.declare.rules.known_issues",
    "assay.declare.rules.policy_limits",
    "assay.declare.rules.policies",
    "assay.declare.rules.fault_rules",
    "assay.declare.rules.rack_layout",
    "assay.declare.rules.node_specs",
    "assay.declare.rules.fabric_designs",
    "assay.declare.rules.secrets",
    "assay.declare.rules.partners",
    "assay.declare.rules.schedule_specs",
    "assay.declare.rules.active_proof",
    "assay.declare.rules.repository_files",
)
"""The modules that hold rules."""

STAND_IN_CODE = "ASY0400"
FilePosition = tuple[str, int, int]
"""File, line and column (from 1)."""


@frozen
class RuleFinding:
    """One mistake, where it is, and how to fix it."""

    place: FilePosition
    message: str
    fix: str


RuleFunction = Callable[[RepositoryDraft], Iterable[RuleFinding]]


@frozen
class CheckRule:
    """One rule. `find` is None for problems that the reader reports while it loads the repository.

    `needs`: kinds of specs that must all be readable. A name that is missing there may be in a refused spec.
    """

    code: str
    title: str
    why: str
    severity: ProblemSeverity
    find: RuleFunction | None = None
    needs: tuple[type[SpecDocument], ...] = ()

    def problems(self, draft: RepositoryDraft) -> Iterable[FleetProblem]:
        """Return what this rule finds in a fleet; nothing if specs that it `needs` could not be read.

        Raises AssayError if a plug-in's rule fails.
        """
        if self.find is None or (self.needs and not draft.is_complete(*self.needs)):
            return []
        try:
            return [
                FleetProblem(*finding.place, self.code, self.severity, finding.message, finding.fix)
                for finding in self.find(draft)
            ]
        except Exception as error:
            if self.find.__module__.startswith("assay."):
                raise
            message = f"the rule {self.code} of {self.find.__module__} failed: {type(error).__name__}: {error}"
            raise AssayError(message, fix="correct the plug-in, or uninstall its distribution") from error


_RULES: dict[str, CheckRule] = {}


def _register(entry: CheckRule) -> None:
    if entry.code in _RULES:
        raise ValueError(f"{entry.code} is given twice: {_RULES[entry.code].title}, {entry.title}")
    _RULES[entry.code] = entry


def rule(
    code: str, title: str, *, severity: ProblemSeverity = "error", needs: tuple[type[SpecDocument], ...] = ()
) -> Callable[[RuleFunction], RuleFunction]:
    """Register the decorated function as the rule `code`. Its docstring says why: the consequence of the mistake."""

    def register(find: RuleFunction) -> RuleFunction:
        _register(CheckRule(code, title, " ".join((find.__doc__ or "").split()), severity, find, needs))
        return find

    return register


def load_rules() -> dict[str, CheckRule]:
    """Return every rule by its code, including those of plug-ins. Raises AssayError if a plug-in cannot be loaded."""
    for module in RULE_MODULES:
        importlib.import_module(module)
    for plugin in CHECK_RULES.names():
        known = dict(_RULES)
        try:
            CHECK_RULES.load(plugin)
        except AssayError:
            _RULES.clear()
            _RULES.update(known)  # so that the next attempt can register the module's rules again
            raise
    return dict(sorted(_RULES.items()))


for _code, _title, _why in (
    (
        "ASY0001",
        "a file is no readable YAML",
        "assay ignores a file that it cannot read: duplicate keys, tags, bad text.",
    ),
    ("ASY0002", "a spec of no known kind", "If the kind is misspelt, the whole document has no effect."),
    ("ASY0003", "a spec does not fit its schema", "An unknown key or a value of a wrong type has no effect."),
    ("ASY0004", "a file that contradicts itself", "Each entry fits its schema, but some entries exclude each other."),
    ("ASY0005", "a spec extends one that does not exist", "The inherited part of the spec is missing."),
    ("ASY0006", "specs that extend each other", "Nobody knows which of them comes first."),
    ("ASY0010", "an inventory file is not in Ansible's format", "Ansible skips such entries with a warning, or fails."),
    ("ASY0011", "there is no inventory", "Without nodes there is no fleet."),
    ("ASY0012", "a node's variables do not fit", "Every node needs its place, its serial number and what it must be."),
    ("ASY0056", "a unit that is not known", "A misspelt unit misleads: GB/s and Gb/s differ by a factor of eight."),
    ("ASY0013", "a node without a spec", "Without a spec, assay cannot validate the node."),
    (
        "ASY0282",
        "a container image without a digest",
        "A tag can name another image tomorrow, so nobody knows which program computed the results.",
    ),
    ("ASY0048", "an artifact without a digest", "Without a digest, zap flashes any file of that name."),
    ("ASY0077", "a fault that no rule answers", "assay sees the fault, but the policy does not say what to do."),
    (
        "ASY0110",
        "a list of switches that cannot be read",
        "Without the list, the switches of the fabric have no place and no GUID.",
    ),
    ("ASY0173", "a known issue that excuses everything", "With this entry, nothing in the fleet can fail any more."),
    ("ASY0088", "a policy that names an unknown state", "No such state exists, so no node can move there."),
    ("ASY0190", "a deadline before the state can be left", "Even a healthy node misses such a deadline."),
    ("ASY0191", "a limit of a policy that can never be reached", "The limit looks active, but it never applies."),
    (
        "ASY0223",
        "numbers for flapping that contradict each other",
        "A node opens too early, or people are never asked.",
    ),
    (
        "ASY0224",
        "a window of the ladder that changes nothing",
        "The bound looks active, but another one always applies.",
    ),
    (
        "ASY0274",
        "a correction that the setting or the state does not allow",
        "A job that runs on the node would suffer, or the correction would change nothing.",
    ),
    ("ASY0414", "a file that cannot be fetched", "A start or a push of firmware fails once it is a node's turn."),
    ("ASY0225", "a lemon score that contradicts itself", "Every node becomes a lemon at once, or none ever does."),
):
    _register(CheckRule(_code, _title, _why, "notice" if _code == "ASY0414" else "error"))


@fact
class CheckReport:
    """Every mistake in the inventory and the specs."""

    problems: list[FleetProblem]
    """The problems, in order of file and line."""
    nodes: int
    """How many nodes were checked."""
    specs: int = internal()

    @property
    def is_clean(self) -> bool:
        """Whether there are no problems except notices, which announce future ones."""
        return all(problem.severity == "notice" for problem in self.problems)

    @property
    def stand_ins(self) -> int:
        """How many of the problems are examples that stand in for a site's own."""
        return sum(problem.code == STAND_IN_CODE for problem in self.problems)


def check_repository(
    root: Path,
    now: datetime | None = None,
    commit: str = "",
    *,
    is_lab: bool = False,
    cache: ParseCache | None = None,
) -> CheckReport:
    """Check the repository at `root`: a commit of it, or the working folder.

    Expiry dates are compared with `now` (default: the machine's time). `is_lab`: for the lab, where examples serve.

    Mistakes in the repository are reported, not raised. Raises AssayError for a plug-in that does not work.
    """
    draft = RepositoryDraft(root.absolute(), commit=commit, cache=cache, now=now)
    problems = list(draft.problems)
    for rule in load_rules().values():
        if rule.code != STAND_IN_CODE or not is_lab:
            problems += rule.problems(draft)
    return CheckReport(sorted(set(problems)), len(draft.hosts), len(draft.specs))
