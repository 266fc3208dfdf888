"""How checks that did not pass are told in the terminal: one line each, no tracebacks unless asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from assay.model.outcome import Outcome


@dataclass(frozen=True)
class Crash:
    """Where and why, as `--tb=line` and pytest's short summary print it."""

    path: str
    lineno: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


class CalmRepr:
    """One line in place of a traceback, in the form that pytest expects of a report's `longrepr`."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        self.reprcrash = Crash(path, line, reason)

    def toterminal(self, tw: Any) -> None:
        """Write the line."""
        tw.line(self.reprcrash.message)

    def __str__(self) -> str:
        return self.reprcrash.message


def is_asked_for(config: pytest.Config) -> bool:
    """Return whether one line each is what the user gets: neither -v nor --tb was given."""
    return bool(config.option.verbose <= 0 and config.option.tbstyle == "auto")


def hush(config: pytest.Config) -> None:
    """Leave failures to `tell`, so that each is printed once."""
    config.option.tbstyle = "no"
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.reportchars = ""


def tell(reporter: pytest.TerminalReporter, outcomes: list[Outcome]) -> None:
    """Print what could not be collected, and what did not pass."""
    colours = {"fail": {"red": True}, "error": {"yellow": True}, "skip": {}}
    told = lines(outcomes)
    broken = [report for report in reporter.stats.get("error", []) if isinstance(report, pytest.CollectReport)]
    if told or broken:
        reporter.write_line("")
    for report in broken:
        said = [line for line in report.longreprtext.splitlines() if line.startswith("E ")] or [report.longreprtext]
        reporter.write_line(f"ERROR {report.nodeid}  {said[-1].removeprefix('E').strip()}", red=True)
    for verdict, line in told:
        reporter.write_line(line, **colours[verdict])


def lines(outcomes: Iterable[Outcome]) -> list[tuple[str, str]]:
    """Return (verdict, line) for all that is no pass: what, where, why. What one cause did to a node is one line."""
    causes: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        alone = outcome.subject if outcome.verdict == "fail" else outcome.node or outcome.subject
        causes.setdefault((outcome.verdict, alone, outcome.reason + _aside(outcome)), []).append(outcome)
    return [
        (verdict, _line(verdict, same, reason))
        for wanted in ("fail", "error", "skip")
        for (verdict, _, reason), same in causes.items()
        if verdict == wanted
    ]


def _aside(outcome: Outcome) -> str:
    """Return what is said of one that decides nothing."""
    known = f"  (known: {outcome.known})" if outcome.known else ""
    return f"{known}  (observed only)" if outcome.observed else known


def _line(verdict: str, same: list[Outcome], reason: str) -> str:
    subjects, checks = list({one.subject for one in same}), {one.check.removeprefix("suites/") for one in same}
    subject = subjects[0] if len(subjects) == 1 else "/".join(subjects[0].split("/")[:2])
    what = checks.pop() if len(same) == 1 else f"{len(same)} outcomes"
    return f"{verdict:<5} {subject:<18} {what}  {reason}"
