"""What all runs said: of a node's checks, of its measurements, of the pools."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

import typer

from assay.harness.history.ask import History, Judged, Of, Turn, judged, turns
from assay.harness.history.flapping import Flap, flapping
from assay.harness.history.noise import Noise, noise
from assay.harness.history.places import home
from assay.harness.history.rates import Rate, rates
from assay.harness.results.lines import WIDTH, short, sign, when
from assay.harness.told import plainly
from assay.lifecycle.when import moment, spoken
from assay.model.errors import Trouble
from assay.model.spans import counted

if TYPE_CHECKING:
    from assay.cli.desk import Desk
    from assay.model.outcome import Verdict

COLOURS = {"fail": "red", "error": "yellow", "pass": "green"}
MOST = 20


def outcomes(desk: Desk, node: str, days: int, check: str, form: str) -> None:
    """Show when which check of a node failed and recovered, and what flaps."""
    of = Of(nodes=[node], fits=check)
    with _asked(desk) as history:
        sum_, found, flaps = (
            judged(history, of, days=days),
            turns(history, of, days=days),
            flapping(history, of, days=days),
        )
    if form == "json":
        _print(
            {
                "node": node,
                "days": days,
                **asdict(sum_),
                "turns": [*map(asdict, found)],
                "flapping": [*map(asdict, flaps)],
            }
        )
        return
    if not sum_.runs:
        _nothing(desk, node, days, check)
        return
    _say(_turned(found))
    _say(_flapping(flaps))
    typer.echo(f"{node}: {_counted(sum_)}; {_standing(found)}")


def measurements(desk: Desk, node: str, days: int, check: str, form: str) -> None:
    """Show the newest measurements of a node, each beside what it was before."""
    if not node:
        raise Trouble("no node is named", fix="assay history NODE --measurements")
    with _asked(desk) as history:
        found = noise(history, Of(nodes=[node], fits=check), days=days)
    if form == "json":
        _print({"node": node, "days": days, "measurements": [{**asdict(one), "times": one.times} for one in found]})
        return
    if not found:
        _nothing(desk, node, days, check)
    for one in found:
        typer.secho(_measured(one), fg="yellow" if one.is_far else None)


def pools(desk: Desk, node: str, days: int, check: str, form: str) -> None:  # noqa: ARG001 — no node is named
    """Show how every pool did, day by day, and what flaps most."""
    of = Of(fits=check)
    with _asked(desk) as history:
        found, flaps = rates(history, of, days=days), flapping(history, of, days=days)
    if form == "json":
        plain = [{**asdict(one), "day": str(one.day), "success": one.success} for one in found]
        _print({"days": days, "pools": plain, "flapping": [*map(asdict, flaps)]})
        return
    if not found:
        typer.echo(f"nothing was judged in the last {counted(days, 'day')}{_of(check)}")
    _say(map(_rate, found))
    _say(_flapping(flaps))


def _asked(desk: Desk) -> History:
    return History(home(desk.reports), desk.clock.now())


def _print(plain: dict[str, object]) -> None:
    typer.echo(json.dumps(plain, indent=1, ensure_ascii=False))


def _say(lines: Iterator[str]) -> None:
    """Print lines, and an empty one below if there were any."""
    said = "\n".join(lines)
    if said:
        typer.echo(f"{said}\n")


def _nothing(desk: Desk, node: str, days: int, check: str) -> None:
    """Say that nothing is known. Raises Trouble for a node that does not exist."""
    if node not in desk.fleet.nodes:
        near = get_close_matches(node, desk.fleet.nodes, n=3, cutoff=0.5)
        raise Trouble(f"no node is called {node}", fix=f"did you mean {', '.join(sorted(near))}?" if near else "")
    typer.echo(f"nothing was judged on {node} in the last {counted(days, 'day')}{_of(check)}")


def _of(check: str) -> str:
    return f" by checks such as {check}" if check else ""


def _turned(found: Sequence[Turn]) -> Iterator[str]:
    """Yield a line for each turn; what turned alike in one run is one line."""
    alike: dict[tuple[str, str, str], list[Turn]] = defaultdict(list)
    for turn in found:
        alike[turn.run, sign(turn.verdict, turn.known, observed=turn.observed), turn.reason].append(turn)
    since: dict[tuple[str, str], str] = {}
    for (_, word, reason), same in alike.items():
        first = same[0]
        began = since.get((first.check, first.subject))
        why = f"after {spoken(moment(first.at) - moment(began))}" if began and first.verdict == "pass" else reason
        head = typer.style(f"{word:<5}", fg=COLOURS.get(word))
        yield f"{typer.style(when(first.at), dim=True)}  {head} {_what(same)}  {why}".rstrip()
        since |= {(turn.check, turn.subject): turn.at for turn in same}


def _what(same: Sequence[Turn | Flap]) -> str:
    """Return where and by which check; of several, how many there are."""
    first, checks = same[0], {one.check for one in same}
    if len(same) == 1:
        return f"{first.subject:<{WIDTH}} {short(first.check)}"
    place = "/".join(first.subject.split("/")[:2])
    check = short(first.check) if len(checks) == 1 else counted(len(checks), "check")
    return f"{place:<{WIDTH}} {check}, {len(same)} outcomes"


def _standing(found: Sequence[Turn]) -> str:
    """Return how many checks do not pass now."""
    last = Counter({(turn.check, turn.subject): turn.verdict for turn in found}.values())
    left = [f"{last[verdict]} {word}" for verdict, word in WORDS.items() if last[verdict]]
    return f"at last {', '.join(left)}" if left else "at last nothing failed"


WORDS: dict[Verdict, str] = {"fail": "failed", "error": "could not be judged"}


def _counted(one: Judged) -> str:
    span = f"from {when(one.first)} to {when(one.last)}" if one.runs > 1 else f"at {when(one.first)}"
    return f"{counted(one.outcomes, 'outcome')} of {counted(one.runs, 'run')} {span}"


def _flapping(flaps: Sequence[Flap]) -> Iterator[str]:
    """Yield a line for each check that flaps, or for those that do so alike on one node."""
    alike: dict[tuple[object, ...], list[Flap]] = defaultdict(list)
    for one in flaps:
        alike[one.node or one.subject, one.check, one.times, one.judged, one.verdict].append(one)
    for (_, _, times, judgements, verdict), same in islice(alike.items(), MOST):
        turned = f"turned {times} times in the last {judgements} judgements, at last {verdict}"
        yield f"{typer.style('flaps', fg='yellow')} {_what(same)}  {turned}"
    if len(alike) > MOST:
        yield f"… and {len(alike) - MOST} more; `--check` says of which to tell"


def _measured(one: Noise) -> str:
    now = f"{one.subject:<{WIDTH}} {one.name:<24} {plainly(one.value)} {one.unit}".rstrip()
    if one.median is None:
        return f"{now}, measured once"
    spread = f" ± {one.noise:.2g}" if one.noise else ""
    return f"{now}, before {plainly(round(one.median, 3))}{spread} ({counted(one.count, 'document')})"


def _rate(one: Rate) -> str:
    success = "no verdict" if one.success is None else f"{one.success:8.2%}"
    counts = {"passed": one.passed, "failed": one.failed, "known": one.known, "not judged": one.errors}
    parts = [f"{count} {word}" for word, count in {**counts, "skipped": one.skipped}.items() if count]
    return f"{one.day}  {one.pool:<{WIDTH}} {success}  {counted(one.runs, 'run')}, {', '.join(parts)}"
