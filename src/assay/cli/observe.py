"""`assay observe`: collect evidence now, and say plainly what did not answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.observed import Observed, code, counted, observed, progress, readings, silences, summary
from assay.cli.recorded import keep_recorded, recorded
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.model.evidence import Evidence
    from assay.model.fleet import Fleet

app = typer.Typer(add_completion=False, help="Collect evidence now.")

Names = Annotated[list[str] | None, typer.Argument(metavar="[NODE]...", help="Which nodes; all where none is named.")]
From = Annotated[
    list[Path] | None, typer.Option("--from", metavar="FILE...", help="Read these files of other tools in instead.")
]
Whose = Annotated[str, typer.Option("--node", help="With --from: the node that the files are of.")]
At = Annotated[str, typer.Option("--at", help="With --from: when it was, instead of when the files were written.")]
Pool = Annotated[str, typer.Option("--pool", help="Only the nodes of this pool.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write NODE.json here instead of keeping the evidence.")]
Active = Annotated[str, typer.Option("--active", help="Also run these: all_reduce,gpu_burn,nvme_read,memory.")]
Here = Annotated[bool, typer.Option("--here", help="Read this machine itself, with nothing virtual, and show all.")]
Deadline = Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds that every channel may take.")]

PARTS = ("all_reduce", "gpu_burn", "nvme_read", "memory")


@app.command()
def observe(
    nodes: Names = None,
    pool: Pool = "",
    out: Out = None,
    active: Active = "",
    here: Here = False,
    deadline: Deadline = 10.0,
    files: From = None,
    node: Whose = "",
    at: At = "",
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Collect evidence from nodes and their BMCs, all at once.

    Exit 0: every channel answered; 1: some did not; 2: nothing could be asked, or nobody answered anything.
    """
    desk, parts = Desk(fleet.resolve()), _parts(active)
    if files or node or at:
        if not files or here or pool or active:
            raise Trouble(
                "--node and --at go with --from, and nothing else does", fix="assay observe --from FILE --node N"
            )
        read_in = recorded(desk, [*files, *map(Path, nodes or [])], node, at)
        digest = keep_recorded(desk, read_in) if out is None else _write(read_in, out)
        said = observed(desk.fleet, read_in, digest)
        _say(form, said.plain, lambda: counted(read_in))
        raise typer.Exit(code([said]))
    if here:
        if nodes or pool:
            raise Trouble("--here reads this machine only", fix="leave out the nodes and --pool")
        collected = _observe_here(parts, deadline, out)
        _say(form, collected.as_json(), lambda: readings(collected))
        raise typer.Exit(1 if silences(collected) else 0)
    begun = time.monotonic()
    found = _observe(desk, _chosen(desk.fleet, nodes or [], pool), parts, deadline, out)
    took_s = round(time.monotonic() - begun, 1)
    _say(form, {"nodes": [one.plain for one in found], "took_s": took_s}, lambda: summary(found, took_s))
    raise typer.Exit(code(found))


def _say(form: str, document: dict[str, Any], show: Callable[[], None]) -> None:
    if form == "json":
        print(json.dumps(document))  # noqa: T201 — the answer
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


def _observe(desk: Desk, names: list[str], parts: list[str], deadline: float, out: Path | None) -> list[Observed]:
    """Collect, keep each document as it comes, and return what is to be said of each node, in the order of `names`."""
    from assay.observe.collect import collect_each
    from assay.observe.store import EvidenceStore

    wanted = dict.fromkeys(names, parts) if parts else {}
    store = EvidenceStore(desk.evidence)
    found: dict[str, Observed] = {}
    each = collect_each(desk.fleet, names, clock=desk.clock, active=wanted, deadline_s=deadline, store=store)
    with progress(len(names)) as told, closing(each):
        for evidence in each:
            digest = store.put(evidence) if out is None else _write(evidence, out)
            found[evidence.node] = observed(desk.fleet, evidence, digest)
            told(evidence.node)
    return [found[name] for name in names]


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


def _write(evidence: Evidence, folder: Path) -> str:
    from assay.model.evidence import canonical
    from assay.observe.store import write_whole

    write_whole(folder / f"{evidence.node}.json", canonical(evidence.as_json()))
    return evidence.digest()
