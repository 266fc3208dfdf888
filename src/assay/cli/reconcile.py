"""`assay reconcile`: observe, validate, decide and act, once, until quiet, or continuously."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.controller.once import PassReport

app = typer.Typer(add_completion=False, help="Observe, validate, decide and act.")

Once = Annotated[bool, typer.Option("--once", help="One pass, instead of one after the other until Ctrl-C.")]
Nodes = Annotated[list[str] | None, typer.Option("--node", help="Only this node; may be repeated.")]
Pool = Annotated[str, typer.Option("--pool", help="Only the nodes of this pool.")]
Settle = Annotated[bool, typer.Option("--settle", help="Repeat passes until nothing changes, twelve at most.")]
Interval = Annotated[float, typer.Option("--interval", min=1, help="Seconds of the fleet's time between two passes.")]


@app.command()
def reconcile(
    once: Once = False,
    nodes: Nodes = None,
    pool: Pool = "",
    settle: Settle = False,
    interval: Interval = 300.0,
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Take the fleet round the loop, and say what changed and why. Progress goes to standard error."""
    desk = Desk(fleet.resolve())
    names = _chosen(desk, nodes or [], pool)
    if once or settle:
        from assay.controller import once as controller

        passes = controller.settle(lambda number: _pass(desk, names, scan=number == 0)) if settle else None
        _tell(passes or [_pass(desk, names)], form)
        return
    try:
        for report in _for_ever(desk, names, interval):
            _tell([report], form)
    except KeyboardInterrupt:
        print("stopped; what was begun is taken up by the next pass", file=sys.stderr)  # noqa: T201


def _for_ever(desk: Desk, names: list[str], interval: float) -> Iterator[PassReport]:
    while True:
        yield _pass(desk, names)
        desk.clock.sleep(interval)


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
        progress=lambda line: print(f"· {line}", file=sys.stderr, flush=True),  # noqa: T201 — people wait for this
    )


def _chosen(desk: Desk, nodes: list[str], pool: str) -> list[str]:
    if unknown := [name for name in nodes if name not in desk.fleet.nodes]:
        raise Trouble(f"the inventory has no node {', '.join(unknown)}", where=str(desk.root / "inventory"))
    chosen = [one.name for one in desk.fleet.nodes.values() if pool in ("", one.pool)]
    chosen = [name for name in chosen if not nodes or name in nodes]
    if not chosen:
        pools = ", ".join(sorted({node.pool for node in desk.fleet.nodes.values()}))
        raise Trouble("no node to reconcile", fix=f"the pools are {pools or 'none: the inventory is empty'}")
    return chosen


def _tell(passes: list[PassReport], form: str) -> None:
    if form == "json":
        print(json.dumps({"passes": [_plain(one) for one in passes]}))  # noqa: T201 — the answer
        return
    from assay.controller.telling import line

    lines = [line(entry) for report in passes for entry in report.entries]
    print("\n".join(lines) if lines else "nothing changed")  # noqa: T201 — the answer


def _plain(report: PassReport) -> dict[str, Any]:
    entries = [{"at": one.at, "kind": one.kind, "node": one.node, "body": one.body} for one in report.entries]
    return {"at": report.at, "changes": entries, "runs": report.runs}
