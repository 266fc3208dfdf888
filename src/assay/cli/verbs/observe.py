"""`assay observe`: collect evidence now, and say plainly what did not answer.

Evidence of a node from files that other tools wrote: `assay observe --from FILE… --node NODE`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.render.collected_evidence import (
    CollectionReport,
    describe_collection,
    exit_code_of,
    find_unanswered,
    print_collection_summary,
    print_reading_counts,
    print_readings,
    show_collection_progress,
)
from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.cli.workspace import Workspace
    from assay.model.evidence import EvidenceDocument


def read_recording(desk: Workspace, files: list[Path], node: str, at: str) -> EvidenceDocument:
    """Return what the files say of a node, at that time or when they were written. Raises Trouble."""
    from assay.observe.recordings.recording_reader import read_recordings

    if not node:
        raise AssayError("a recording does not say whose it is", fix="name the node: --node NAME")
    if node not in desk.fleet.nodes:
        raise AssayError(f"the inventory has no node {node}", where=str(desk.fleet.root / "inventory"))
    return read_recordings(files, node, _parse_recording_time(at))


def store_recording(desk: Workspace, evidence: EvidenceDocument) -> str:
    """Store a recording and return its digest; it is the node's newest evidence only where it is the newest.

    Where it is not, stderr says so: what is judged then is not what was just read.
    """
    from assay.observe.evidence_store import EvidenceStore

    store = EvidenceStore(desk.evidence_dir)
    last = store.latest(evidence.node)
    if last is None or last.at <= evidence.at:
        return store.store_latest(evidence)
    said = f"kept as history: evidence of {evidence.node} of {last.at:%Y-%m-%d %H:%M:%S} UTC is newer"
    print(f"{said}; --at says when it was", file=sys.stderr)  # noqa: T201
    return store.store_document(evidence)


def _parse_recording_time(at: str) -> datetime | None:
    if not at:
        return None
    try:
        read = datetime.fromisoformat(at)
    except ValueError:
        raise AssayError(f"{at!r} is no time", fix="write it as 2026-11-21T08:00:00Z") from None
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


if TYPE_CHECKING:
    from assay.model.evidence import EvidenceDocument
    from assay.model.fleet import Fleet

observe_app = typer.Typer(add_completion=False, help="Collect evidence now.")

Names = Annotated[list[str] | None, typer.Argument(metavar="[NODE]...", help="Which nodes; all where none is named.")]
From = Annotated[
    list[Path] | None, typer.Option("--from", metavar="FILE...", help="Read these files of other tools in instead.")
]
RecordingNodeOption = Annotated[str, typer.Option("--node", help="With --from: the node that the files are of.")]
At = Annotated[str, typer.Option("--at", help="With --from: when it was, instead of when the files were written.")]
Pool = Annotated[str, typer.Option("--pool", help="Only the nodes of this pool.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write NODE.json here instead of keeping the evidence.")]
Active = Annotated[str, typer.Option("--active", help="Also run these: all_reduce,gpu_burn,nvme_read,memory.")]
Here = Annotated[bool, typer.Option("--here", help="Read this machine itself, with nothing virtual, and show all.")]
Deadline = Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds that every channel may take.")]

ACTIVE_PARTS = ("all_reduce", "gpu_burn", "nvme_read", "memory")


@observe_app.command()
def observe(
    nodes: Names = None,
    pool: Pool = "",
    out: Out = None,
    active: Active = "",
    here: Here = False,
    deadline: Deadline = 10.0,
    files: From = None,
    node: RecordingNodeOption = "",
    at: At = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Collect evidence from nodes and their BMCs, all at once.

    Exit 0: every channel answered; 1: some did not; 2: nothing could be asked, or nobody answered anything.
    """
    desk, parts = Workspace(fleet.resolve()), _parse_active_parts(active)
    if files or node or at:
        if not files or here or pool or active:
            raise AssayError(
                "--node and --at go with --from, and nothing else does", fix="assay observe --from FILE --node N"
            )
        read_in = read_recording(desk, [*files, *map(Path, nodes or [])], node, at)
        digest = store_recording(desk, read_in) if out is None else _write(read_in, out)
        said = describe_collection(desk.fleet, read_in, digest)
        _print_answer(form, said.json_data, lambda: print_reading_counts(read_in))
        raise typer.Exit(exit_code_of([said]))
    if here:
        if nodes or pool:
            raise AssayError("--here reads this machine only", fix="leave out the nodes and --pool")
        collected = _observe_here(parts, deadline, out)
        _print_answer(form, collected.as_json(), lambda: print_readings(collected))
        raise typer.Exit(1 if find_unanswered(collected) else 0)
    begun = time.monotonic()
    found = _observe(desk, _select_nodes(desk.fleet, nodes or [], pool), parts, deadline, out)
    took_s = round(time.monotonic() - begun, 1)
    _print_answer(
        form,
        {"nodes": [one.json_data for one in found], "took_s": took_s},
        lambda: print_collection_summary(found, took_s),
    )
    raise typer.Exit(exit_code_of(found))


def _print_answer(form: str, document: dict[str, Any], show: Callable[[], None]) -> None:
    if form == "json":
        print(json.dumps(document))  # noqa: T201 — the answer
    else:
        show()


def _parse_active_parts(active: str) -> list[str]:
    parts = [part.strip() for part in active.split(",") if part.strip()]
    unknown = [part for part in parts if part not in ACTIVE_PARTS]
    if unknown:
        raise AssayError(f"there is no active part {', '.join(unknown)}", fix=f"use some of {', '.join(ACTIVE_PARTS)}")
    return parts


def _select_nodes(fleet: Fleet, names: list[str], pool: str) -> list[str]:
    unknown = [name for name in names if name not in fleet.nodes]
    if unknown:
        raise AssayError(f"the inventory has no node {', '.join(unknown)}", where=str(fleet.root / "inventory"))
    wanted = set(names) or set(fleet.nodes)
    chosen = [node.name for node in fleet.nodes.values() if node.name in wanted and pool in ("", node.pool)]
    if not chosen:
        pools = ", ".join(sorted({node.pool for node in fleet.nodes.values()}))
        raise AssayError("no node to observe", fix=f"the pools are {pools or 'none: the inventory is empty'}")
    return chosen


def _observe(
    desk: Workspace, names: list[str], parts: list[str], deadline: float, out: Path | None
) -> list[CollectionReport]:
    """Collect, keep each document as it comes, and return what is to be said of each node, in the order of `names`."""
    from assay.observe.evidence_collector import stream_evidence
    from assay.observe.evidence_store import EvidenceStore

    wanted = dict.fromkeys(names, parts) if parts else {}
    store = EvidenceStore(desk.evidence_dir)
    found: dict[str, CollectionReport] = {}
    each = stream_evidence(desk.fleet, names, clock=desk.clock, active=wanted, deadline_s=deadline, store=store)
    with show_collection_progress(len(names)) as told, closing(each):
        for evidence in each:
            digest = store.store_latest(evidence) if out is None else _write(evidence, out)
            found[evidence.node] = describe_collection(desk.fleet, evidence, digest)
            told(evidence.node)
    return [found[name] for name in names]


def _observe_here(parts: list[str], deadline: float, out: Path | None) -> EvidenceDocument:
    import socket

    from assay.model.clock import SystemClock
    from assay.model.evidence import EvidenceDocument
    from assay.observe.evidence_collector import ACTIVE_DEADLINE_S
    from assay.observe.transports.transport_choice import run_local_probe

    now = SystemClock().now()
    arguments = ["--active", ",".join(parts), "--at", now.isoformat()] if parts else []
    channels = run_local_probe(arguments, deadline + (ACTIVE_DEADLINE_S if parts else 0))
    found = EvidenceDocument(socket.gethostname(), now, channels)
    if out is not None:
        _write(found, out)
    return found


def _write(evidence: EvidenceDocument, folder: Path) -> str:
    from assay.model.evidence import encode_canonical_json
    from assay.observe.evidence_store import write_atomically

    write_atomically(folder / f"{evidence.node}.json", encode_canonical_json(evidence.as_json()))
    return evidence.digest()
