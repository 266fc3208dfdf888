"""How checks that did not pass are told in the terminal: one line each, no tracebacks unless asked for."""

from __future__ import annotations

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
    """Print one line for every outcome that is no pass: what, where, why. Skips with one reason share a line."""
    colours = {"fail": {"red": True}, "error": {"yellow": True}, "skip": {}}
    wanted = [outcome for verdict in colours for outcome in outcomes if outcome.verdict == verdict]
    if wanted:
        reporter.write_line("")
    for line, verdict in dict.fromkeys((_line(outcome), outcome.verdict) for outcome in wanted):
        reporter.write_line(line, **colours[verdict])


def _line(outcome: Outcome) -> str:
    name = outcome.check.removeprefix("suites/")
    return f"{outcome.verdict:<5} {outcome.subject:<22} {name}  {outcome.reason}"
