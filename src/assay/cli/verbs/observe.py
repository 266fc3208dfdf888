"""`assay observe`: collects evidence now and reports what did not answer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import WHICH, FleetDir, OutputFormat, Pool, nodes_argument, option
from assay.cli.output import show_progress
from assay.cli.verbs.faults import format_unjudged
from assay.cli.workspace import Workspace, require_known, select_nodes
from assay.model.errors import AssayError
from assay.model.facts import fact, shown
from assay.model.specs.load_parts import LOAD_PARTS, LoadPart, select_possible
from assay.model.text.lists import fold_names

if TYPE_CHECKING:
    from assay.decide.faults.unjudged import UnjudgedForm
    from assay.model.evidence import EvidenceDocument
    from assay.model.fleet import Fleet


MAX_FAILURES_SHOWN = 3


@fact
class CollectedNode:
    """What was collected of a node, without the evidence itself."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that it is in."""
    at: str
    """When the evidence was collected: ISO 8601 with the offset of UTC."""
    evidence: str
    """The digest of the evidence."""
    channels: dict[str, str]
    """Each channel, such as host or bmc, with value if it answered, else absent, unsupported or failed."""
    unanswered: dict[str, dict[str, str]]
    """What did not answer, by channel: the branch ("" for all of the channel) with the reason."""
    readings: dict[str, int]
    """How many readings there are of each kind: value, absent, unsupported or failed."""
    failed: dict[str, str]
    """The readings that failed: the path of each, which begins with the channel, with the reason."""
    not_judged: list[UnjudgedForm]
    """Errors of watched drivers in the log lines, which no class of faults has. With any, the exit code is 2."""


@fact
class LocalEvidenceAnswer:
    """The evidence of this machine, with all readings."""

    schema: str
    """The version of the form of the evidence."""
    node: str
    """The name of this machine."""
    at: str
    """When it was collected: ISO 8601 with the offset of UTC."""
    channels: dict[str, Any]
    """The readings as a tree, by channel."""
    after_entry: int | None = shown(omit=True, default=None)
    """The number of the last ledger entry before it was collected; missing where nothing says it."""


@fact
class ObserveAnswer:
    """What was collected of each node; the evidence itself is stored."""

    nodes: list[CollectedNode]
    """The nodes, in the order of the inventory."""
    took_s: float
    """How many seconds it took."""


@dataclass(frozen=True)
class CollectionReport:
    """The answer about one node, as a line and as JSON data, without the evidence itself."""

    line: str
    answer: CollectedNode


def describe_collection(fleet: Fleet, evidence: EvidenceDocument, digest: str) -> CollectionReport:
    """Return the report about a node's evidence; `digest` is that of the stored document."""
    from assay.decide.faults.unjudged import count_evidence
    from assay.model.reading import parse_reading
    from assay.observe.evidence_contents import iterate_leaves

    channels = [_format_channel(name, tree) for name, tree in sorted(evidence.channels.items(), reverse=True)]
    wholes = {name: parse_reading(tree) for name, tree in evidence.channels.items()}
    answer = CollectedNode(
        node=evidence.node,
        pool=fleet.nodes[evidence.node].pool,
        at=evidence.at.isoformat(),
        evidence=digest,
        channels={name: "value" if whole is None else whole.kind for name, whole in wholes.items()},
        unanswered=find_unanswered(evidence),
        readings=dict(Counter(reading.kind for _, reading in iterate_leaves(evidence.channels))),
        failed=find_failed_readings(evidence.channels),
        not_judged=count_evidence(fleet.fault_catalog, evidence) if fleet.fault_catalogs else [],
    )
    channels += [f"of another machine: {evidence.stranger}"] if evidence.stranger else []
    return CollectionReport(f"{evidence.node}  {'; '.join(channels)}", answer)


def exit_code_of(reports: Sequence[CollectionReport]) -> int:
    """Return the exit code: 0 all channels answered, 1 some did not, 2 none did, or an error is not judged."""
    if any(report.answer.not_judged for report in reports):
        return 2
    if not any(report.answer.unanswered for report in reports):
        return 0
    return 1 if any("value" in report.answer.channels.values() for report in reports) else 2


def find_unanswered(evidence: EvidenceDocument) -> dict[str, dict[str, str]]:
    """Return channel → branch → reason for what did not answer. The branch is "" for a whole channel."""
    from assay.observe.evidence_contents import find_unanswered_branches

    unanswered = {name: find_unanswered_branches(tree) for name, tree in evidence.channels.items()}
    return {name: reasons for name, reasons in unanswered.items() if reasons}


def print_collection_summary(reports: Sequence[CollectionReport], took_s: float) -> None:
    """Print a line a node, with what did not answer and why, and a summary."""
    from rich.console import Console

    from assay.cli.output import escape

    console = Console(soft_wrap=True, highlight=False)
    for report in reports:
        console.print(f"{'[red]✗[/]' if report.answer.unanswered else '[green]✓[/]'} {escape(report.line)}")
        for line in format_unjudged(report.answer.not_judged):
            console.print(f"  {line}", markup=False)
    silent = sum(bool(report.answer.unanswered) for report in reports)
    console.print(f"{len(reports)} observed in {took_s:g} s, {silent} with channels that did not answer")


def _format_channel(name: str, tree: Any) -> str:
    from assay.model.reading import parse_reading
    from assay.observe.evidence_contents import find_unanswered_branches

    whole = parse_reading(tree)
    if whole is not None and whole.kind != "failed":
        return f"{name} {whole.kind}: {whole.reason}"
    missing = find_unanswered_branches(tree)
    if not missing:
        return f"{name} ok{_format_failed_readings(tree)}"
    text = "; ".join(f"{name}{'.' if branch else ''}{branch} failed: {reason}" for branch, reason in missing.items())
    return text if whole is not None else text + _format_failed_readings(tree)


def _format_failed_readings(tree: Any) -> str:
    """Return the first few readings that failed below a branch, with reasons, and the number of the others."""
    deep = {path: reason for path, reason in find_failed_readings(tree).items() if "." in path}
    if not deep:
        return ""
    shown = "; ".join(f"{path}: {reason}" for path, reason in list(deep.items())[:MAX_FAILURES_SHOWN])
    more = f"; and {len(deep) - MAX_FAILURES_SHOWN} more" if len(deep) > MAX_FAILURES_SHOWN else ""
    return f" ({shown}{more})"


def find_failed_readings(tree: Any) -> dict[str, str]:
    """Return path → reason of all failed readings of a channel."""
    from assay.observe.evidence_contents import iterate_leaves

    return {".".join(path): leaf.reason for path, leaf in iterate_leaves(tree) if leaf.kind == "failed"}


def print_readings(evidence: EvidenceDocument) -> None:
    """Print a line a reading, with its whole path, for use with grep. A reading without a value shows its reason."""
    from rich.console import Console

    from assay.cli.output import escape
    from assay.observe.evidence_contents import iterate_leaves

    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{evidence.node} at {evidence.at:%Y-%m-%d %H:%M:%S} UTC")
    for path, reading in iterate_leaves(evidence.channels):
        text = str(reading.value) if reading.kind == "value" else f"{reading.kind}: {reading.reason}"
        if isinstance(reading.value, list) and any(isinstance(item, dict) for item in reading.value):
            text = f"{len(reading.value)} entries"
        console.print(f"{escape('.'.join(path))}  {escape(text)}")


Names = Annotated[list[str] | None, nodes_argument("The nodes. Default: all.")]
Here = Annotated[bool, option("--here", "Read this machine instead, and print all readings.", group=WHICH)]
Active = Annotated[
    str,
    option(
        "--active PARTS",
        f"Also run those of these load tests that a node can, separated by commas: {', '.join(LOAD_PARTS)}.",
    ),
]
Deadline = Annotated[
    float, option("--deadline S", "Seconds for each channel; a BMC that answers gets 18 times that.", min=0.1)
]
Out = Annotated[Path | None, option("--out DIR", "Write DIR/NODE.json instead of storing the evidence.")]


def observe(
    nodes: Names = None,
    pool: Pool = "",
    here: Here = False,
    active: Active = "",
    deadline: Deadline = 10.0,
    out: Out = None,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Collect evidence from nodes and their BMCs, all at once.

    Exit codes: 0 every channel answered; 1 some did not; 2 nothing could be collected, or an error was that nobody
    judged.
    """
    parts = [part.strip() for part in active.split(",") if part.strip()]
    require_known(parts, LOAD_PARTS, "active part")
    if here:  # it needs no fleet
        if nodes or pool:
            raise AssayError("--here reads this machine only", fix="leave out the nodes and --pool")
        local = _observe_here(parts, deadline, out)
        _print_answer(form, local.as_json(), lambda: print_readings(local))
        raise typer.Exit(1 if find_unanswered(local) else 0)
    workspace = Workspace(fleet.resolve())
    workspace.announce()
    start = time.monotonic()
    selected = select_nodes(workspace.fleet, nodes or [], [pool] if pool else [])
    reports = _observe_nodes(workspace, selected, parts, deadline, out)
    took_s = round(time.monotonic() - start, 1)
    document = ObserveAnswer(nodes=[report.answer for report in reports], took_s=took_s)
    _print_answer(form, document, lambda: print_collection_summary(reports, took_s))
    raise typer.Exit(exit_code_of(reports))


def _observe_nodes(
    workspace: Workspace, names: list[str], parts: list[str], deadline: float, out: Path | None
) -> list[CollectionReport]:
    """Collect, store each document as it arrives, and return the reports in the order of `names`."""
    from assay.act.orders.orders import refuse_watched
    from assay.model.decision import LOAD
    from assay.observe.evidence_collector import stream_evidence
    from assay.observe.evidence_store import EvidenceStore

    for name in names if parts else ():
        refuse_watched(workspace.fleet, name, LOAD)
    wanted = cast("list[LoadPart]", parts)  # the caller has refused other words
    active = {name: select_possible(wanted, workspace.fleet.parts_of(name)) for name in names}
    if lacking := [name for name in names if parts and not active[name]]:
        typer.echo(f"not loaded, as they lack what it needs: {', '.join(fold_names(lacking))}", err=True)
    store = EvidenceStore(workspace.evidence_dir)
    reports: dict[str, CollectionReport] = {}
    documents = stream_evidence(
        workspace.fleet, names, clock=workspace.clock, active=active, deadline_s=deadline, store=store
    )
    with show_progress("observed") as show, closing(documents):
        for evidence in _identify(workspace, documents):
            digest = store.store_latest(evidence) if out is None else _write(evidence, out)
            reports[evidence.node] = describe_collection(workspace.fleet, evidence, digest)
            show({"observed": (len(reports), len(names))})
    return [reports[name] for name in names]


def _identify(workspace: Workspace, documents: Iterable[EvidenceDocument]) -> Iterator[EvidenceDocument]:
    """Yield evidence, marked where another machine than the node's answered."""
    from assay.decide.faults.identity import mark_stranger

    states = {state.node: state for state in workspace.read_node_states()}
    return (mark_stranger(workspace.fleet, states.get(evidence.node), evidence) for evidence in documents)


def _observe_here(parts: list[str], deadline: float, out: Path | None) -> EvidenceDocument:
    import socket

    from assay.model.clock import SystemClock
    from assay.model.evidence import EvidenceDocument
    from assay.node.load_tools.registry import find_long_parts_s
    from assay.observe.evidence_collector import ACTIVE_DEADLINE_S
    from assay.observe.transports.transport import run_local_probe

    now = SystemClock().now()
    arguments = ["--active", ",".join(parts), "--at", now.isoformat()] if parts else []
    channels = run_local_probe(arguments, deadline + (ACTIVE_DEADLINE_S + find_long_parts_s(parts) if parts else 0))
    evidence = EvidenceDocument(socket.gethostname(), now, channels)
    if out is not None:
        _write(evidence, out)
    return evidence


def _write(evidence: EvidenceDocument, folder: Path) -> str:
    from assay.model.evidence import encode_canonical_json
    from assay.observe.evidence_store import write_atomically

    write_atomically(folder / f"{evidence.node}.json", encode_canonical_json(evidence.as_json()))
    return evidence.digest()


def _print_answer(form: str, document: object, print_text: Callable[[], None]) -> None:
    if form == "json":
        typer.echo(format_answer(document))
    else:
        print_text()
