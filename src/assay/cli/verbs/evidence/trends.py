"""`assay trends`: what is getting worse, compared with its peers, and when it reaches its limit."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import OutputFormat
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.trends.peers.change_warnings import ChangeWarning
    from assay.trends.peers.trend_answer import TrendAnswer

trends_app = typer.Typer(add_completion=False)


@trends_app.command()
def trends(
    measurements: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Parquet: time, node, subject, name, value, unit, at_least, at_most.",
            show_default=False,
        ),
    ],
    holders: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Who a part was, where. Parquet: node, subject, serial, sku, firmware, rack, position, since, until.",
        ),
    ] = None,
    failures: Annotated[Path | None, typer.Option(metavar="FILE", help="Parquet: time, node, subject, fault.")] = None,
    as_of: Annotated[
        str, typer.Option(metavar="TIME", help="Ask as of this moment (ISO 8601, UTC). By default: now.")
    ] = "",
    form: OutputFormat = "text",
) -> None:
    """Show which parts get worse among their peers.

    The change of a part in two months is compared with that of at least 19 others of its kind and firmware. Nothing
    after `--as-of` is read. Exit codes: 0 nothing gets worse; 1 something does; 2 a file is wrong.
    """
    from assay.trends.peers.measurement_tables import TrendFiles
    from assay.trends.peers.trend_answer import answer_trends

    answer = answer_trends(TrendFiles(measurements, holders, failures), _parse_moment(as_of))
    typer.echo(json.dumps(answer.as_json(), indent=1) if form == "json" else "\n".join(format_answer(answer)))
    raise typer.Exit(1 if answer.warnings else 0)


def format_answer(answer: TrendAnswer) -> Iterator[str]:
    """Yield the lines for people: one for each group, then one for each part."""
    found = answer.findings
    known = f"{found.series.judged} series compared; cannot tell: {found.series.cannot_tell} with fewer than 20 peers"
    if not answer.warnings:
        yield f"Nothing gets worse: {known}"
        return
    yield f"Getting worse: {len(answer.warnings)} parts; {known}"
    groups: dict[str, list[ChangeWarning]] = defaultdict(list)
    for warning in answer.warnings:
        groups[warning.group].append(warning)
    for group, warnings in sorted(groups.items(), reverse=True):
        if group:
            yield f"{group}: {warnings[0].score.name}. Look there first"
        for warning in warnings:
            one = warning.score
            yield f"{'  ' if group else ''}{one.node} {one.subject}  {warning.because} (z {one.worse:.1f})"
    told = "of the fleet's own history" if found.is_learned else "by default, as the history is short"
    yield f"A part is named above z {found.threshold:.1f}, {told}"


def _parse_moment(text: str) -> datetime:
    if not text:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise AssayError(f"{text!r} is no time", fix="write it as 2026-11-24T06:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
