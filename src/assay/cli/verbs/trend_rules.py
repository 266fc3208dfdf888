"""`assay trends rules`: how good each rule of TrendRules has been."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.decide.trends.rule_record import RuleRecord
    from assay.decide.trends.warning_answers import TrendRulesAnswer
    from assay.decide.trends.warning_history import WarningHistory
    from assay.model.specs.trend_rules import TrendRules

AsOf = Annotated[str, typer.Option(metavar="TIME", help="Ask as of this moment (ISO 8601, UTC). By default: now.")]


def parse_moment(text: str, workspace: Workspace | None = None) -> datetime:
    """Return the moment that an option names, by default now by the fleet's clock. Raises AssayError for others."""
    if not text:
        return workspace.clock.now() if workspace else datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise AssayError(f"{text!r} is no time", fix="write it as 2026-11-24T06:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def rules(context: typer.Context, fleet: FleetDir = Path(), as_of: AsOf = "", form: OutputFormat = "text") -> None:
    """Show how good each rule has been: right and wrong warnings, the failures that it foresaw, its lead, its cost.

    A rule that does not earn its keep only observes from then on. A reviewed change of the rule begins its record
    anew. Exit codes: 0 shown; 2 there is no ledger.
    """
    from assay.cli.verbs.rule_record_lines import format_records

    workspace = Workspace((context.obj or fleet if fleet == Path() else fleet).resolve())
    moment = parse_moment(as_of, workspace)
    _, records = read_rule_records(workspace, moment, read_history(workspace, moment))
    plain: TrendRulesAnswer = {"rules": [one.as_json() for one in records]}
    typer.echo(format_answer(plain, indent=1) if form == "json" else "\n".join(format_records(records)))


def read_rule_records(
    workspace: Workspace | None, as_of: datetime, history: WarningHistory
) -> tuple[TrendRules, list[RuleRecord]]:
    """Return the rules of a fleet and their records at a moment; without a fleet those that assay ships, unproven."""
    from assay.decide.trends.fleet_tables import list_failures
    from assay.decide.trends.rule_record import make_rule_records
    from assay.declare.starter.shipped_specs import find_trend_rules

    known = find_trend_rules(workspace.fleet if workspace else None)
    failures = list_failures(workspace.ledger_for_reading, as_of) if workspace else []
    return known, make_rule_records(known, history, failures)


def read_history(workspace: Workspace | None, as_of: datetime) -> WarningHistory:
    """Return the warnings of a fleet at a moment; without a fleet there are none."""
    from assay.decide.trends.warning_history import TREND_ENTRY_KINDS, read_warning_history
    from assay.model.timestamps import parse_time

    entries = workspace.ledger_for_reading.entries(kinds=TREND_ENTRY_KINDS) if workspace else ()
    return read_warning_history(entry for entry in entries if parse_time(entry.at) <= as_of)
