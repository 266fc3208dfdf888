"""`assay trends`: what is getting worse, compared with its peers, and when it reaches its limit."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import format_answer
from assay.cli.left_out_files import tell_left_out
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.verbs.trend_rules import AsOf, parse_moment, read_history, read_rule_records, rules
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from duckdb import DuckDBPyConnection

    from assay.decide.trends.trend_report import TrendReport

trends_app = typer.Typer(add_completion=False)

trends_app.command()(rules)


@trends_app.callback(invoke_without_command=True)
def trends(
    context: typer.Context,
    fleet: FleetDir = Path(),
    measurements: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead of the fleet's history. Parquet: time, node, subject, name, value, unit, at_least, at_most.",
        ),
    ] = None,
    holders: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Who a part was, where. Parquet: node, subject, serial, sku, firmware, rack, position, since, until.",
        ),
    ] = None,
    failures: Annotated[Path | None, typer.Option(metavar="FILE", help="Parquet: time, node, subject, fault.")] = None,
    as_of: AsOf = "",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with pictures to this file too.")
    ] = None,
    form: OutputFormat = "text",
) -> None:
    """Show which parts get worse among their peers.

    The change of a part in two months is compared with that of at least 19 others of its kind and firmware. Nothing
    after `--as-of` is read. Exit codes: 0 nothing gets worse; 1 something does; 2 a file is wrong.
    """
    from assay.decide.trends.day_cache import KEPT_FILE
    from assay.decide.trends.measurement_tables import DAY_S, TrendFiles, open_tables
    from assay.decide.trends.trend_answer import find_trends
    from assay.decide.trends.trend_report import TrendReport
    from assay.decide.trends.warning_advice import advise
    from assay.decide.trends.warning_courses import read_courses
    from assay.ledger.history.damaged_files import read_without_damaged
    from assay.model.worsening import render_worsening

    context.obj = fleet
    if context.invoked_subcommand is not None:
        return
    if measurements is None and (holders or failures):
        raise AssayError("there are no measurements", fix="give --measurements too")
    own = None if measurements else Workspace(fleet.resolve())
    moment = parse_moment(as_of, own)
    kept = own.reports_dir / KEPT_FILE if own and not as_of else None
    unread: list[str] = []

    def read(left_out: Collection[str]) -> TrendReport:
        files = TrendFiles(measurements, holders, failures)
        with open_tables(files, moment) if measurements else _open(fleet, moment, left_out) as database:
            history = read_history(own, moment)
            known, records = read_rule_records(own, moment, history)
            answer = find_trends(database, moment, known.change, kept, history.ended, recognise_counters=own is None)
            courses = read_courses(database, answer.warnings, int(moment.timestamp() // DAY_S)) if html else []
        return TrendReport(moment, answer, advise(known, records, answer.warnings), records, courses, unread)

    def skip(error: AssayError) -> None:
        unread.append(str(error))
        tell_left_out(error)

    report = read_without_damaged(read, skip)
    if html:
        _write_page(html, render_worsening(report.as_page_json(), in_lab=own is not None and own.home.is_lab))
    typer.echo(format_answer(report.as_json(), indent=1) if form == "json" else "\n".join(_format(report)))
    raise typer.Exit(1 if report.answer.warnings else 0)


def _format(report: TrendReport) -> Iterator[str]:
    from assay.cli.verbs.rule_record_lines import format_records
    from assay.cli.verbs.trend_lines import format_trends

    yield from format_trends(report.answer, report.advised)
    yield from format_records(report.judged_records)


def _write_page(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise AssayError(f"cannot be written: {error.strerror}", where=str(path), fix="name another file") from None


@contextmanager
def _open(fleet: Path, as_of: datetime, left_out: Collection[str]) -> Iterator[DuckDBPyConnection]:
    """Have the tables of the fleet itself."""
    from assay.decide.trends.feeds_and_switches import name_feeds_and_switches
    from assay.decide.trends.fleet_tables import open_fleet_tables
    from assay.fabric.design.node_leaves import find_node_leaves
    from assay.ledger.history.parquet_files import history_folder

    workspace = Workspace(fleet.resolve())
    home, ledger = history_folder(workspace.reports_dir), workspace.ledger_for_reading
    with open_fleet_tables(home, ledger, as_of, left_out) as database:
        name_feeds_and_switches(database, workspace.fleet.nodes.values(), find_node_leaves(workspace.fleet))
        yield database
