"""`assay trends parts`, `soak`, `burn-in`: how long parts last, and what soaks and burn-ins tell of that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.verbs.evidence.trend_rules import AsOf, parse_moment
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from datetime import datetime

    from duckdb import DuckDBPyConnection

    from assay.ledger.store import Ledger
    from assay.trends.parts.part_risks import ReturnHistory
    from assay.trends.parts.part_survival import KindSurvival, Trait
    from assay.trends.shapes.part_answers import TrendsPartsAnswer, TrendsSoakAnswer

Holders = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Instead of the ledger. Parquet: node, subject, serial, sku, firmware, rack, position, since, until; "
        "kind and batch may be there too.",
    ),
]
Failures = Annotated[Path | None, typer.Option(metavar="FILE", help="Parquet: time, node, subject, fault.")]


def parts(
    context: typer.Context,
    fleet: FleetDir = Path(),
    holders: Holders = None,
    failures: Failures = None,
    kind: Annotated[str, typer.Option(metavar="KIND", help="Only parts of this kind, such as gpu.")] = "",
    by: Annotated[
        list[str] | None, typer.Option(metavar="TRAIT", help="batch, sku, position or rack; may be given again.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a page with the curves.")] = None,
    as_of: AsOf = "",
    form: OutputFormat = "text",
) -> None:
    """Show how long parts last, by delivery, SKU and position: for people who plan, and for vendors.

    The share that still works is the estimate of Kaplan and Meier, with a band of 95 % confidence. Groups are compared
    by the log-rank test. Days count since a part was first seen here. Exit codes: 0 shown; 2 a file is wrong.
    """
    from assay.cli.render.trends.part_lines import format_survival

    workspace = _find_fleet(context, fleet)
    moment = parse_moment(as_of, workspace)
    found = _measure_survival(workspace, holders, failures, moment, _check_traits(by or []), kind)
    if html is not None:
        from assay.trends.parts.survival_page import render_survival

        write_page(html, render_survival(found, moment, in_lab=workspace.home.is_lab))
    plain: TrendsPartsAnswer = {"as_of": moment.isoformat(), "kinds": [one.as_json() for one in found]}
    typer.echo(format_answer(plain, indent=1) if form == "json" else "\n".join(format_survival(found)))


def soak(
    context: typer.Context,
    fleet: FleetDir = Path(),
    holders: Holders = None,
    failures: Failures = None,
    as_of: AsOf = "",
    form: OutputFormat = "text",
) -> None:
    """Show how soon nodes fail again after a repair, and what each further hour of soak would catch and cost.

    Exit codes: 0 shown; 2 a file is wrong.
    """
    from assay.cli.render.trends.part_lines import format_soaks
    from assay.trends.parts.soak_costs import measure_soaks

    workspace = _find_fleet(context, fleet)
    history = _read_history(workspace, holders, failures, parse_moment(as_of, workspace))
    soaks = measure_soaks(history.followed)
    bands = [band.as_json() for band in history.hazard.bands]
    plain: TrendsSoakAnswer = {
        "usual_per_node_day": history.hazard.usual,
        "after_return": bands,
        "repairs": [one.as_json() for one in soaks],
    }
    typer.echo(format_answer(plain, indent=1) if form == "json" else "\n".join(format_soaks(history, soaks)))


def burn_in(context: typer.Context, fleet: FleetDir = Path(), as_of: AsOf = "", form: OutputFormat = "text") -> None:
    """Show whether what parts read in their burn-in foretells that they fail within 90 days.

    The parts of each delivery are ranked by what they read. Exit codes: 0 shown; 2 the ledger cannot be read.
    """
    from assay.cli.render.trends.part_lines import format_acceptances
    from assay.trends.parts.acceptance_ranks import judge_acceptances
    from assay.trends.parts.ledger_stays import make_failures, make_stays, read_acceptances
    from assay.trends.parts.part_stays import FailureTimes, days_of
    from assay.trends.peers.fleet_holders import list_fleet_holders
    from assay.trends.peers.fleet_tables import list_failures

    workspace = _find_fleet(context, fleet)
    moment = parse_moment(as_of, workspace)
    ledger = workspace.ledger_for_reading
    failed = FailureTimes.collect(make_failures(list_failures(ledger, moment)))
    accepted = read_acceptances(ledger, workspace.fleet.burn_ins, moment)
    report = judge_acceptances(accepted, make_stays(list_fleet_holders(ledger, moment)), failed, days_of(moment))
    typer.echo(format_answer(report.as_json(), indent=1) if form == "json" else "\n".join(format_acceptances(report)))


def _find_fleet(context: typer.Context, fleet: Path) -> Workspace:
    return Workspace((context.obj or fleet if fleet == Path() else fleet).resolve())


def _check_traits(by: list[str]) -> tuple[Trait, ...]:
    from assay.trends.parts.part_survival import KNOWN_TRAITS, TRAITS

    for one in by:
        if one not in KNOWN_TRAITS:
            raise AssayError(f"{one!r} is no trait of parts", fix=f"use {', '.join(KNOWN_TRAITS)}")
    return tuple(one for one in KNOWN_TRAITS if one in by) or TRAITS


@contextmanager
def _open_files(holders: Path, failures: Path | None, as_of: datetime) -> Iterator[DuckDBPyConnection]:
    from assay.trends.peers.measurement_tables import TrendFiles, open_tables

    with open_tables(TrendFiles(holders=holders, failures=failures), as_of) as database:
        yield database


def _measure_survival(
    workspace: Workspace,
    holders: Path | None,
    failures: Path | None,
    as_of: datetime,
    traits: tuple[Trait, ...],
    kind: str,
) -> list[KindSurvival]:
    from assay.trends.parts.ledger_stays import make_failures, make_stays
    from assay.trends.parts.part_stays import FailureTimes, days_of
    from assay.trends.parts.part_survival import measure_survival
    from assay.trends.parts.table_stays import read_table_failures, read_table_stays
    from assay.trends.peers.fleet_holders import list_fleet_holders
    from assay.trends.peers.fleet_tables import list_failures

    _refuse_failures_alone(holders, failures)
    if holders:
        with _open_files(holders, failures, as_of) as database:
            failed = FailureTimes.collect(read_table_failures(database))
            return measure_survival(read_table_stays(database), failed, days_of(as_of), traits, kind)
    ledger = workspace.ledger_for_reading
    failed = FailureTimes.collect(make_failures(list_failures(ledger, as_of)))
    return measure_survival(make_stays(list_fleet_holders(ledger, as_of)), failed, days_of(as_of), traits, kind)


def _read_history(workspace: Workspace, holders: Path | None, failures: Path | None, as_of: datetime) -> ReturnHistory:
    from assay.trends.parts.part_risks import read_ledger_history, read_table_history

    _refuse_failures_alone(holders, failures)
    if holders:
        with _open_files(holders, failures, as_of) as database:
            return read_table_history(database, as_of)
    return read_ledger_history(*read_service_ledger(workspace), as_of)


def read_service_ledger(workspace: Workspace) -> tuple[Ledger, frozenset[str]]:
    """Return the ledger, and the states in which nodes serve."""
    return workspace.ledger_for_reading, workspace.fleet.policy.states_in_service


def _refuse_failures_alone(holders: Path | None, failures: Path | None) -> None:
    if failures and not holders:
        raise AssayError("there are no holders of parts", fix="give --holders too")


def write_page(path: Path, page: str) -> None:
    """Write a page. Raises AssayError for a file that cannot be written."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise AssayError(f"cannot be written: {error.strerror}", where=str(path), fix="name another file") from None
