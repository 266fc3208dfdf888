"""`assay observe`: collect evidence now, and say plainly what did not answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.model.evidence import Evidence
    from assay.model.fleet import Fleet
    from assay.model.reading import Reading

app = typer.Typer(add_completion=False, help="Collect evidence now.")

Names = Annotated[list[str] | None, typer.Argument(metavar="[NODE]...", help="Which nodes; all where none is named.")]
Pool = Annotated[str, typer.Option("--pool", help="Only the nodes of this pool.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write NODE.json here instead of keeping the evidence.")]
Active = Annotated[str, typer.Option("--active", help="Also run these: all_reduce,gpu_burn,nvme_read,memory.")]
Here = Annotated[bool, typer.Option("--here", help="Read this machine itself, with nothing virtual, and show all.")]
Deadline = Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds that every channel may take.")]

PARTS = ("all_reduce", "gpu_burn", "nvme_read", "memory")
_CELL = 100


@app.command()
def observe(
    nodes: Names = None,
    pool: Pool = "",
    out: Out = None,
    active: Active = "",
    here: Here = False,
    deadline: Deadline = 10.0,
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Collect evidence from nodes and their BMCs, all at once.

    Exit 0: every channel answered; 1: some did not; 2: nothing could be asked.
    """
    desk, parts = Desk(fleet.resolve()), _parts(active)
    if here:
        if nodes or pool:
            raise Trouble("--here reads this machine only", fix="leave out the nodes and --pool")
        collected = _observe_here(parts, deadline, out)
        _say(form, collected.as_json(), lambda: _readings(collected))
        raise typer.Exit(1 if _unanswered(collected) else 0)
    found = _observe(desk, _chosen(desk.fleet, nodes or [], pool), parts, deadline)
    kept = _keep(desk, found, out)
    _say(form, {"nodes": [_plain(desk, one, kept) for one in found]}, lambda: _summary(found))
    raise typer.Exit(1 if any(_unanswered(one) for one in found) else 0)


def _say(form: str, plain: dict[str, Any], show: Callable[[], None]) -> None:
    if form == "json":
        print(json.dumps(plain))  # noqa: T201 — the answer
    else:
        show()


def _parts(active: str) -> list[str]:
    parts = [part.strip() for part in active.split(",") if part.strip()]
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise Trouble(f"there is no active part {', '.join(unknown)}", fix=f"use some of {', '.join(PARTS)}")
    return parts


def _chosen(fleet: Fleet, names: list[str], pool: str) -> list[str]:
    unknown = [name for name in names if name not in fleet.nodes]
    if unknown:
        raise Trouble(f"the inventory has no node {', '.join(unknown)}", where=str(fleet.root / "inventory"))
    wanted = set(names) or set(fleet.nodes)
    chosen = [node.name for node in fleet.nodes.values() if node.name in wanted and pool in ("", node.pool)]
    if not chosen:
        pools = ", ".join(sorted({node.pool for node in fleet.nodes.values()}))
        raise Trouble("no node to observe", fix=f"the pools are {pools or 'none: the inventory is empty'}")
    return chosen


def _observe(desk: Desk, names: list[str], parts: list[str], deadline: float) -> list[Evidence]:
    from assay.observe.collect import collect

    wanted = dict.fromkeys(names, parts) if parts else {}
    with _progress(len(names)) as told:
        found = collect(desk.fleet, names, clock=desk.clock, active=wanted, deadline_s=deadline, progress=told)
    return list(found.values())


def _observe_here(parts: list[str], deadline: float, out: Path | None) -> Evidence:
    import socket

    from assay.model.clock import SystemClock
    from assay.model.evidence import Evidence
    from assay.observe.collect import ACTIVE_DEADLINE_S
    from assay.observe.reach import probe_here

    now = SystemClock().now()
    arguments = ["--active", ",".join(parts), "--at", now.isoformat()] if parts else []
    channels = probe_here(arguments, deadline + (ACTIVE_DEADLINE_S if parts else 0))
    found = Evidence(socket.gethostname(), now, channels)
    if out is not None:
        _write(found, out)
    return found


def _keep(desk: Desk, found: list[Evidence], out: Path | None) -> dict[str, str]:
    """Store the evidence, or write it to `out`; return each node's digest."""
    from assay.observe.store import EvidenceStore

    if out is None:
        store = EvidenceStore(desk.evidence)
        return {one.node: store.put(one) for one in found}
    return {one.node: _write(one, out) for one in found}


def _write(evidence: Evidence, folder: Path) -> str:
    from assay.model.evidence import canonical
    from assay.observe.store import write_whole

    write_whole(folder / f"{evidence.node}.json", canonical(evidence.as_json()))
    return evidence.digest()


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """Show a bar on standard error, where a person is there to see it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("observing", total=total)
        yield lambda name: bar.update(task, advance=1, description=f"observed {name}")


def _unanswered(evidence: Evidence) -> dict[str, dict[str, str]]:
    """Return channel → branch → reason of what did not answer; the branch is "" for a whole channel."""
    from assay.observe.leaves import unanswered

    found = {name: unanswered(tree) for name, tree in evidence.channels.items()}
    return {name: reasons for name, reasons in found.items() if reasons}


def _summary(found: list[Evidence]) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(soft_wrap=True, highlight=False)
    for one in found:
        words = [_channel(name, tree) for name, tree in sorted(one.channels.items(), reverse=True)]
        sign = "[red]✗[/]" if _unanswered(one) else "[green]✓[/]"
        console.print(f"{sign} {one.node}  {escape('; '.join(words))}")
    silent = sum(bool(_unanswered(one)) for one in found)
    console.print(f"{len(found)} observed, {silent} with something that did not answer")


def _channel(name: str, tree: Any) -> str:
    from assay.model.reading import as_reading
    from assay.observe.leaves import unanswered

    whole = as_reading(tree)
    if whole is not None and whole.kind != "failed":
        return f"{name} {whole.kind}: {whole.reason}"
    missing = unanswered(tree)
    if not missing:
        return f"{name} ok"
    return "; ".join(f"{name}{'.' if branch else ''}{branch} failed: {reason}" for branch, reason in missing.items())


def _readings(evidence: Evidence) -> None:
    """Show every reading of this machine: what is not there reads absent, never zero."""
    from rich.console import Console
    from rich.table import Table

    from assay.observe.leaves import leaves

    table = Table("reading", "", "value or reason", title=f"{evidence.node} at {evidence.at:%Y-%m-%d %H:%M:%S} UTC")
    for path, reading in leaves(evidence.channels):
        table.add_row(".".join(path), reading.kind, _cell(reading))
    Console(highlight=False).print(table)


def _cell(reading: Reading) -> str:
    from rich.markup import escape

    if isinstance(reading.value, list) and reading.value:
        return f"{len(reading.value)} entries"
    text = str(reading.value) if reading.kind == "value" else reading.reason
    return escape(text if len(text) <= _CELL else f"{text[: _CELL - 1]}…")


def _plain(desk: Desk, evidence: Evidence, kept: Mapping[str, str]) -> dict[str, Any]:
    from assay.model.reading import as_reading

    wholes = {name: as_reading(tree) for name, tree in evidence.channels.items()}
    return {
        "node": evidence.node,
        "pool": desk.fleet.nodes[evidence.node].pool,
        "at": evidence.at.isoformat(),
        "evidence": kept[evidence.node],
        "channels": {name: "value" if whole is None else whole.kind for name, whole in wholes.items()},
        "unanswered": _unanswered(evidence),
    }
