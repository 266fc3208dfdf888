"""`assay trends rules`: how good each rule of TrendRules has been."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from assay.cli.options import FleetDir, OutputFormat
from assay.cli.verbs.evidence.trend_reviews import AsOf, parse_moment
from assay.cli.workspace import Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from assay.model.specs.trend_rules import TrendRules
    from assay.trends.warnings.rule_record import RuleRecord


def rules(context: typer.Context, fleet: FleetDir = Path(), as_of: AsOf = "", form: OutputFormat = "text") -> None:
    """Show how good each rule has been: right and wrong warnings, the failures that it foresaw, its lead, its cost.

    A rule that does not earn its keep only observes from then on. A reviewed change of the rule begins its record
    anew. Exit codes: 0 shown; 2 there is no ledger.
    """
    from assay.cli.render.rule_record_lines import format_records

    workspace = Workspace((context.obj or fleet if fleet == Path() else fleet).resolve())
    _, records = read_rule_records(workspace, parse_moment(as_of))
    plain = {"rules": [one.as_json() for one in records]}
    typer.echo(json.dumps(plain, indent=1) if form == "json" else "\n".join(format_records(records)))


def read_rule_records(workspace: Workspace | None, as_of: datetime) -> tuple[TrendRules, list[RuleRecord]]:
    """Return the rules of a fleet and their records at a moment; without a fleet those that assay ships, unproven."""
    from assay.model.timestamps import parse_time
    from assay.starter.shipped_specs import find_trend_rules
    from assay.trends.peers.fleet_tables import list_failures
    from assay.trends.warnings.rule_record import make_rule_records
    from assay.trends.warnings.warning_history import TREND_ENTRY_KINDS, WarningHistory, read_warning_history

    if workspace is None:
        known = find_trend_rules(None)
        return known, make_rule_records(known, WarningHistory((), {}), [])
    ledger, known = workspace.ledger_for_reading, find_trend_rules(workspace.fleet)
    entries = (entry for entry in ledger.entries(kinds=TREND_ENTRY_KINDS) if parse_time(entry.at) <= as_of)
    return known, make_rule_records(known, read_warning_history(entries), list_failures(ledger, as_of))
