"""`assay reconcile`: observe, validate, decide and act, once, until quiet, or continuously."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.controller.clock.timetable import Task
    from assay.controller.desk import Desk as Work
    from assay.controller.once import PassReport
    from assay.model.entry import Entry
    from assay.model.fleet import Fleet

app = typer.Typer(add_completion=False, help="Observe, validate, decide and act.")

Once = Annotated[bool, typer.Option("--once", help="One pass over every node, and back.")]
Nodes = Annotated[list[str] | None, typer.Option("--node", help="Only this node; may be repeated.")]
Pool = Annotated[str, typer.Option("--pool", help="Only the nodes of this pool.")]
Settle = Annotated[bool, typer.Option("--settle", help="Repeat passes until nothing changes, twelve at most.")]
Interval = Annotated[
    float | None,
    typer.Option(
        "--interval", min=1, help="Seconds of the fleet's time between two looks at a node (specs/schedules)."
    ),
]


@app.command()
def reconcile(
    once: Once = False,
    nodes: Nodes = None,
    pool: Pool = "",
    settle: Settle = False,
    interval: Interval = None,
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Take the fleet round the loop, and say what changed and why. Progress goes to standard error.

    Without --once or --settle it goes on until SIGTERM or Ctrl-C: it looks at each node in its turn, answers what is
    new in the ledger at once, and does by the clock what specs/schedules say. With them it looks at every node and
    fabric, and names what else is due by the clock: `assay schedules run` does that.
    """
    desk = Desk(fleet.resolve())
    names = _chosen(desk.fleet, nodes or [], pool)
    if once or settle:
        from assay.controller import once as controller

        passes = controller.settle(lambda number: _pass(desk, names, scan=number == 0)) if settle else None
        _tell(passes or [_pass(desk, names)], _left(desk), form)
        return
    _for_ever(desk, partial(_chosen, nodes=nodes or [], pool=pool), interval, form)


def _for_ever(desk: Desk, chosen: Callable[[Fleet], list[str]], interval: float | None, form: str) -> None:
    from assay.controller.known.current import Current
    from assay.controller.known.memory import Memory
    from assay.controller.loop import Loop, Told
    from assay.controller.share import shared

    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    work = _work(desk)
    current = Current(desk.root, partial(load_again, desk), desk.clock, _say, desk.overlays)
    with shared(work) as share:
        Loop(Memory(work), share, current, chosen, Told(_changed(form), _say), interval).run(stop)
    _say("stopped; what was begun is taken up by the next start")


def load_again(desk: Desk) -> Fleet:
    """Return the fleet as its files say now."""
    from assay.fleet.load import load_fleet

    return load_fleet(desk.root, desk.overlays)


def _work(desk: Desk) -> Work:
    from assay.controller.desk import Desk as Work
    from assay.observe.store import EvidenceStore

    store = EvidenceStore(desk.evidence)
    return Work(desk.fleet, desk.ledger, store, desk.clock, desk.home, desk.reports, progress=_progress)


def _pass(desk: Desk, names: list[str], *, scan: bool = True) -> PassReport:
    from assay.controller.once import reconcile_once
    from assay.observe.store import EvidenceStore

    return reconcile_once(
        desk.fleet,
        desk.ledger,
        EvidenceStore(desk.evidence),
        desk.clock,
        nodes=names,
        home=desk.home,
        reports=desk.reports,
        scan_fabric=scan,
        progress=_progress,
    )


def _chosen(fleet: Fleet, nodes: list[str], pool: str) -> list[str]:
    if unknown := [name for name in nodes if name not in fleet.nodes]:
        raise Trouble(f"the inventory has no node {', '.join(unknown)}", where=str(fleet.root / "inventory"))
    chosen = [one.name for one in fleet.nodes.values() if pool in ("", one.pool)]
    chosen = [name for name in chosen if not nodes or name in nodes]
    if not chosen:
        pools = ", ".join(sorted({node.pool for node in fleet.nodes.values()}))
        raise Trouble("no node to reconcile", fix=f"the pools are {pools or 'none: the inventory is empty'}")
    return chosen


def _say(text: str) -> None:
    from assay.model.secrets import hidden

    print(f"assay reconcile: {hidden(text)}", file=sys.stderr, flush=True)  # noqa: T201 — for people


def _progress(line: str) -> None:
    print(f"· {line}", file=sys.stderr, flush=True)  # noqa: T201 — people wait for this


def _changed(form: str) -> Callable[[list[Entry]], None]:
    """Return what prints each change as it comes, a line of text or of JSON; what was told once is known by name."""
    from assay.controller.people.telling import Teller, line

    teller = Teller()

    def tell(entries: list[Entry]) -> None:
        for entry in entries:
            told = json.dumps(_plain_entry(entry)) if form == "json" else line(entry, teller)
            print(told, flush=True)  # noqa: T201 — the answer

    return tell


def _left(desk: Desk) -> list[Task]:
    from assay.controller.clock.byhand import left_to_the_clock

    return left_to_the_clock(_work(desk))


def _tell(passes: list[PassReport], left: list[Task], form: str) -> None:
    if left:
        _say(f"due by the clock, which a pass leaves alone: {', '.join(map(str, left))}\n  → assay schedules run")
    if form == "json":
        due = [{"schedule": task.line.name, "of": task.line.part, "slot": task.slot.isoformat()} for task in left]
        print(json.dumps({"passes": [_plain(one) for one in passes], "due": due}))  # noqa: T201 — the answer
        return
    from assay.controller.people.telling import lines

    told = lines([entry for report in passes for entry in report.entries])
    print("\n".join(told) if told else "nothing changed")  # noqa: T201 — the answer


def _plain(report: PassReport) -> dict[str, Any]:
    return {"at": report.at, "changes": [_plain_entry(one) for one in report.entries], "runs": report.runs}


def _plain_entry(one: Entry) -> dict[str, Any]:
    return {"at": one.at, "kind": one.kind, "node": one.node, "body": one.body}
