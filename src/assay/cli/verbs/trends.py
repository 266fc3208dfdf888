"""`assay trends`: what gets worse compared with its peers, when it reaches its limit, and how good each rule was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, OutputFormat, option
from assay.cli.workspace import Workspace, tell_left_out
from assay.model.errors import AssayError
from assay.model.text.lists import format_count

if TYPE_CHECKING:
    from collections.abc import Collection

    from assay.decide.trends.trend_answer import TrendAnswer, TrendReport
    from assay.decide.trends.warning_answers import RuleRecord
    from assay.decide.trends.warnings import AdvisedWarning
    from assay.model.specs.trend_rules import TrendRules


AsOf = Annotated[str, option("--as-of TIME", "Ask as of this moment (ISO 8601, UTC). By default: now.")]


def parse_moment(text: str, workspace: Workspace | None = None) -> datetime:
    """Return the moment that an option names, by default now by the fleet's clock. Raises AssayError for others."""
    if not text:
        return workspace.clock.now() if workspace else datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise AssayError(f"{text!r} is no time", fix="write it as 2026-11-24T06:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_rule_records(workspace: Workspace | None, as_of: datetime) -> tuple[TrendRules, list[RuleRecord]]:
    """Return the rules of a fleet and their records at a moment; without a fleet those that assay ships, unproven."""
    from assay.decide.trends.fleet_tables import list_failures, read_warnings
    from assay.decide.trends.warning_record import WarningHistory
    from assay.decide.trends.warnings import make_rule_records
    from assay.declare.starter.shipped_specs import find_trend_rules

    known = find_trend_rules(workspace.fleet if workspace else None)
    if workspace is None:
        return known, make_rule_records(known, WarningHistory((), {}), [])
    ledger = workspace.ledger_for_reading
    return known, make_rule_records(known, read_warnings(ledger, as_of), list_failures(ledger, as_of))


def trends(
    fleet: FleetDir = Path(),
    measurements: Annotated[
        Path | None,
        option(
            "--measurements FILE",
            "Instead of the fleet's history: Parquet, CSV or JSON lines (time, node, subject, name, value, unit, "
            "at_least, at_most), or the JSON of a Prometheus range query.",
        ),
    ] = None,
    declare: Annotated[
        list[str] | None,
        option("--declare NAME=UNIT:SIDE", "The unit of a measurement, and its worse side: `up` or `down`."),
    ] = None,
    holders: Annotated[
        Path | None,
        option(
            "--holders FILE",
            "Who a part was, where: node, subject, serial, sku, firmware, rack, position, since, until.",
        ),
    ] = None,
    failures: Annotated[Path | None, option("--failures FILE", "What failed: time, node, subject, fault.")] = None,
    as_of: AsOf = "",
    form: OutputFormat = "text",
) -> None:
    """Show which parts get worse among their peers.

    The change of a part in two months is compared with that of at least 19 others of its kind and firmware. Nothing
    after `--as-of` is read. Exit codes: 0 nothing gets worse; 1 something does; 2 a file is wrong.
    """
    from assay.decide.trends.fleet_tables import open_fleet_tables
    from assay.decide.trends.measurement_tables import RefusedRows, TrendFiles, open_tables
    from assay.decide.trends.trend_answer import TrendReport, find_trends
    from assay.decide.trends.warnings import advise
    from assay.ledger.history.parquet_files import history_folder, read_without_damaged

    if measurements is None and (holders or failures):
        raise AssayError("there are no measurements", fix="give --measurements too")
    own = None if measurements else Workspace(fleet.resolve())
    moment = parse_moment(as_of, own)
    unread: list[str] = []
    declared = dict(text.partition("=")[::2] for text in declare or ())
    if wrong := [name for name, text in declared.items() if text.partition(":")[2] not in ("", "up", "down")]:
        raise AssayError(f"--declare {wrong[0]}={declared[wrong[0]]} names no side", fix="write NAME=UNIT:up, or :down")
    refused = RefusedRows()

    def read(left_out: Collection[str]) -> TrendReport:
        files = TrendFiles(measurements, holders, failures, declared)
        opened = (
            open_tables(files, moment, refused)
            if own is None
            else open_fleet_tables(
                history_folder(own.reports_dir), own.ledger_for_reading, moment, left_out, fleet=own.fleet
            )
        )
        with opened as database:
            known, records = read_rule_records(own, moment)
            answer = find_trends(database, moment, known.change, recognise_counters=own is None)
        return TrendReport(moment, answer, advise(known, records, answer.warnings), records, unread, refused)

    def skip(error: AssayError) -> None:
        unread.append(str(error))
        tell_left_out(error)

    report = read_without_damaged(read, skip)
    report.answer.check_compared()
    shown = report.make_answer()
    lines = [*format_trends(report.answer, report.advised), *format_records(shown.records)]
    if refused.count:
        lines += [
            f"Refused: {format_count(refused.count, 'row')} that cannot be right:",
            *(f"  {line}" for line in refused.lines),
        ]
    print_answer(shown, form, lines)
    if own:
        own.print_page(form, "trends")
    raise typer.Exit(1 if report.answer.warnings else 0)


def format_trends(answer: TrendAnswer, advised: Sequence[AdvisedWarning]) -> Iterator[str]:
    """Yield the lines for people: one for each group, then one for each part; what follows stands below."""
    series = answer.series
    reasons = {"with too few peers": series.few_peers, "silent": series.silent, "too new": series.new}
    lacking = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count) or "none"
    known = f"{series.judged} series of {series.parts} parts compared; cannot tell: {lacking}"
    if not advised:
        yield f"Nothing gets worse: {known}"
        yield answer.make_rule().because
        return
    yield f"Getting worse: {format_count(answer.parts, 'part')}; {known}"
    groups: dict[str, list[AdvisedWarning]] = defaultdict(list)
    for advice in advised:
        groups[advice.warning.group].append(advice)
    for group, some in sorted(groups.items(), reverse=True):
        if group:
            yield f"{group}: {some[0].warning.score.name}. Look there first"
        for advice in some:
            score = advice.warning.score
            part = f"{score.node} {score.subject}".rstrip()
            yield f"{'  ' if group else ''}{part}  {advice.warning.because} (evidence {score.part_evidence:.1f})"
            if not group:
                yield f"  {advice.rule}: {advice.payoff}"
        if group:
            yield f"  {some[0].rule}: {some[0].payoff}"
    basis = "by the fleet's own history" if answer.is_learned else "by default, as the history is short"
    yield f"A part is named above evidence {answer.threshold:.1f}, {basis}; evidence 4 is one healthy part in 10,000"
    yield answer.make_rule().because


def format_records(records: Iterable[RuleRecord]) -> Iterator[str]:
    """Yield two lines for each rule: its warnings by what came of them, then how good that makes it."""
    for record in records:
        ended = {"right": record.right, "wrong": record.wrong, "overtaken": record.overtaken}
        counts = {**ended, "cannot tell": record.cannot_tell, "open": record.open}
        shown = [f"{count} {outcome}" for outcome, count in counts.items() if count]
        yield f"{record.name:<9}{record.stage:<9}{', '.join(shown) or 'no warning yet'}"
        if record.lost_because:
            yield f"{'':9}only observes: {record.lost_because}"
        if record.judged:
            yield f"{'':9}{'; '.join(_describe(record))}"


def _describe(record: RuleRecord) -> Iterator[str]:
    if (share := record.precision) is not None and (interval := record.precision_interval):
        yield f"right {share:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"
    yield f"foresaw {record.right} of {record.failures} failures"
    if lead := record.lead_days:
        yield f"{lead[0]:.0f} d before (nine in ten: {lead[1]:.0f} d)"
    acts = record.acts
    yield f"{acts.tests} idle tests meanwhile, {record.cost_node_hours:.1f} node-hours"
    if acts.prevented is None or acts.prevented_interval is None:
        yield "what acting prevented is not known, as none was left alone"
        return
    low, high = acts.prevented_interval
    failed = f"{acts.acted_failed} of {acts.acted} acted on failed, and {acts.left_alone_failed} of {acts.left_alone}"
    yield f"acting prevented {acts.prevented:.1f} failures ({low:.1f} to {high:.1f}): {failed} left alone"
