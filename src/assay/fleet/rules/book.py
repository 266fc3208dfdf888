"""The book of rules: every code, why it matters, and the function that finds it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from assay.fleet.draft import Draft
from assay.fleet.problem import Problem, Severity
from assay.model.spec import Spec

THEMES = (
    "names",
    "nodes",
    "firmware",
    "limits",
    "units",
    "suites",
    "known",
    "policy",
    "answers",
    "faults",
    "racks",
    "fabric",
    "profiles",
    "secrets",
    "kept",
    "transports",
    "workloads",
    "monitoring",
    "gates",
    "schedules",
    "checklists",
)

Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake at file, line and column."""

    place: Place
    message: str
    fix: str


Find = Callable[[Draft], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One code. `find` is None for what the reader itself notices while it loads."""

    code: str
    title: str
    why: str
    severity: Severity
    find: Find | None = None
    needs: tuple[type[Spec], ...] = ()

    def problems(self, draft: Draft) -> Iterable[Problem]:
        """Yield what this rule finds in a fleet; nothing where specs that it `needs` could not be read."""
        if self.find is None or (self.needs and not draft.whole(*self.needs)):
            return
        for found in self.find(draft):
            yield Problem(*found.place, self.code, self.severity, found.message, found.fix)


_RULES: dict[str, Rule] = {}


def _enter(entry: Rule) -> None:
    if entry.code in _RULES:
        raise ValueError(f"{entry.code} is given twice: {_RULES[entry.code].title}, {entry.title}")
    _RULES[entry.code] = entry


def rule(
    code: str, title: str, *, why: str, severity: Severity = "error", needs: tuple[type[Spec], ...] = ()
) -> Callable[[Find], Find]:
    """Enter the function below as the one that finds `code`. It `needs` kinds whose specs it misses by name."""

    def enter(find: Find) -> Find:
        _enter(Rule(code, title, why, severity, find, needs))
        return find

    return enter


def rules() -> dict[str, Rule]:
    """Return every rule by its code."""
    for theme in THEMES:
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
    _enter(Rule(_code, _title, _why, "error"))
