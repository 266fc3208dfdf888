"""The answers of `assay history --outcomes`: what all runs found on a node, and which checks of the fleet are flaky."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import typer

from assay.cli.context_line import print_answer
from assay.cli.workspace import Workspace, require_known, tell_left_out
from assay.ledger.history.parquet_files import history_folder
from assay.ledger.history.queries import (
    FlakyCheck,
    OutcomeHistory,
    OutcomeQuery,
    VerdictTurn,
    query_extent,
    query_flaky_checks,
    query_turns,
)
from assay.model.facts import extend, fact
from assay.model.outcome import CheckVerdict, read_whole
from assay.model.text.lists import format_count
from assay.model.timestamps import format_duration, format_minute, parse_time
from assay.validate.results.outcome_lines import SUBJECT_WIDTH, shorten_check, verdict_word

COLOURS = {"fail": "red", "error": "yellow", "pass": "green"}
MAX_FLAKY_SHOWN = 20
FAILURE_TEXTS: dict[CheckVerdict, str] = {"fail": "failed", "error": "could not be judged"}


@fact
class NodeOutcomesAnswer:
    """When each check of a node failed and recovered, and which checks are flaky."""

    node: str
    """The name of the node."""
    days: int
    """How many days were looked at, besides today."""
    runs: int
    """How many runs judged the node."""
    outcomes: int
    """How many outcomes there are."""
    first: str
    """When the first of these runs began: ISO 8601; "" without one."""
    last: str
    """When the last of these runs began: ISO 8601; "" without one."""
    turns: list[VerdictTurn]
    """The verdicts that differ from the one before, oldest first."""
    flapping: list[FlakyCheck]
    """The flaky checks, those that turned most often first."""


@fact
class FlakyChecksAnswer:
    """The flaky checks of the fleet."""

    days: int
    """How many days were looked at, besides today."""
    flapping: list[FlakyCheck]
    """The flaky checks, those that turned most often first."""


def show_node_outcomes(workspace: Workspace, node: str, days: int, check: str, form: str) -> None:
    """Print when which check of a node failed and recovered, and which checks are flaky."""
    query = OutcomeQuery(nodes=[node], pattern=check)
    with _open_history(workspace) as history:
        extent = query_extent(history, query, days=days)
        turns = query_turns(history, query, days=days)
        flaky = query_flaky_checks(history, query, days=days)
    if form == "json":
        answer = extend(NodeOutcomesAnswer, extent, node=node, days=days, turns=turns, flapping=flaky)
        print_answer(answer, form, ())
        return
    if not extent.runs:
        require_known([node], workspace.fleet.nodes, "node")
        typer.echo(f"nothing was judged on {node} in the last {format_count(days, 'day')}{_check_suffix(check)}")
        return
    _print_block(_format_turns(turns))
    _print_block(_format_flaky(flaky))
    last = format_minute(extent.last)
    span = f"from {format_minute(extent.first)} to {last}" if extent.runs > 1 else f"at {last}"
    judged = f"{format_count(extent.outcomes, 'outcome')} of {format_count(extent.runs, 'run')} {span}"
    verdicts = Counter({(turn.check, turn.subject): turn.verdict for turn in turns}.values())
    failed = [f"{verdicts[verdict]} {text}" for verdict, text in FAILURE_TEXTS.items() if verdicts[verdict]]
    typer.echo(f"{node}: {judged}; at last {', '.join(failed) or 'nothing failed'}")


def show_flaky_checks(workspace: Workspace, days: int, check: str, form: str) -> None:
    """Print the checks of the fleet that are flaky."""
    query = OutcomeQuery(pattern=check)
    with _open_history(workspace) as history:
        flaky, extent = query_flaky_checks(history, query, days=days), query_extent(history, query, days=days)
    if form == "json":
        print_answer(FlakyChecksAnswer(days, flaky), form, ())
        return
    answer = "no check was flaky" if extent.runs else "nothing was judged"
    none = f"{answer} in the last {format_count(days, 'day')}{_check_suffix(check)}"
    typer.echo("\n".join(_format_flaky(flaky)) or none)


def _open_history(workspace: Workspace) -> OutcomeHistory:
    return OutcomeHistory(history_folder(workspace.reports_dir), workspace.clock.now(), tell_left_out)


def _print_block(lines: Iterator[str]) -> None:
    """Print lines, with an empty line after them if there are any."""
    text = "\n".join(lines)
    if text:
        typer.echo(f"{text}\n")


def _check_suffix(check: str) -> str:
    return f" by checks such as {check}" if check else ""


def _format_turns(turns: Sequence[VerdictTurn]) -> Iterator[str]:
    """Yield a line for each change of a verdict. Equal changes in one run share a line."""
    groups: dict[tuple[str, str, str], list[VerdictTurn]] = defaultdict(list)
    for turn in turns:
        groups[turn.run, verdict_word(turn.verdict, turn.known, observed=turn.observed), turn.reason].append(turn)
    failed_at: dict[tuple[str, str], str] = {}
    for (_, word, reason), group in groups.items():
        first = group[0]
        before = failed_at.get((first.check, first.subject))
        recovered = before and first.verdict == "pass"
        remark = (
            f"after {format_duration(parse_time(first.at) - parse_time(before))}" if before and recovered else reason
        )
        at = typer.style(format_minute(first.at), dim=True)
        head = typer.style(f"{word:<5}", fg=COLOURS.get(word))
        yield f"{at}  {head} {_format_subject_and_check(group)}  {remark}".rstrip()
        failed_at |= {(turn.check, turn.subject): turn.at for turn in group}


def _format_subject_and_check(group: Sequence[VerdictTurn | FlakyCheck]) -> str:
    """Return subject and check of a group; of several checks, their number."""
    first, checks = group[0], {item.check for item in group}
    if len(group) == 1:
        return f"{first.subject:<{SUBJECT_WIDTH}} {shorten_check(first.check)}"
    place = read_whole(first.subject)
    check = shorten_check(first.check) if len(checks) == 1 else format_count(len(checks), "check")
    return f"{place:<{SUBJECT_WIDTH}} {check}, {len(group)} outcomes"


def _format_flaky(checks: Sequence[FlakyCheck]) -> Iterator[str]:
    """Yield a line for each flaky check. Checks of one node that changed equally often share a line."""
    groups: dict[tuple[object, ...], list[FlakyCheck]] = defaultdict(list)
    for flaky in checks:
        groups[flaky.node or flaky.subject, flaky.check, flaky.times, flaky.judged, flaky.verdict].append(flaky)
    for (_, _, times, judged, verdict), group in islice(groups.items(), MAX_FLAKY_SHOWN):
        changes = f"changed {times} times in the last {judged} outcomes, last {verdict}"
        yield f"{typer.style('flaky', fg='yellow')} {_format_subject_and_check(group)}  {changes}"
    if len(groups) > MAX_FLAKY_SHOWN:
        yield f"… and {len(groups) - MAX_FLAKY_SHOWN} more; `--check` limits the checks"
