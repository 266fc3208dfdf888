"""`assay fabric`: compares the InfiniBand fabric with its design, scans it, and evaluates a week of scans.

A comparison begins with the worst, puts together what has one cause, and is no longer than people read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import FleetDir, OutputFormat, argument, option
from assay.cli.verbs.fabric_learn import import_cabling_sheet, learn, read_dump
from assay.cli.workspace import Workspace
from assay.fabric.compare.common_causes import group_by_common_cause
from assay.fabric.compare.compare import FabricComparison
from assay.fabric.compare.repair import CablingRepair, measure_cost
from assay.fabric.compare.shared_plugs import drop_other_planes

if TYPE_CHECKING:
    from assay.fabric.design.compiled_topology import CompiledTopology


MAX_REPAIRS, MAX_MEMBERS, MAX_NOTES = 20, 4, 4


def format_comparison(comparison: FabricComparison) -> str:
    """Return one line for a match, and one for each foreign line; else a paragraph for each repair, the worst first."""
    lines = [comparison.summary]
    lines += [f"  could not tell: {problem}" for problem in comparison.problems[:MAX_REPAIRS]]
    lines += [f"  note: {note}" for note in comparison.notes[:MAX_NOTES]]
    if len(comparison.notes) > MAX_NOTES:
        lines.append(f"  and {len(comparison.notes) - MAX_NOTES} more notes like these: --format json")
    repairs = group_by_common_cause(comparison.discrepancies)
    for repair in repairs[:MAX_REPAIRS]:
        lines += ["", *_format_repair(repair)]
    left = len(repairs) - MAX_REPAIRS
    if left > 0 or len(comparison.problems) > MAX_REPAIRS:
        lines += ["", f"and {max(left, 0)} more faults; all of them: --format json"]
    return "\n".join(lines)


def _format_repair(repair: CablingRepair) -> Iterator[str]:
    cost = measure_cost(repair.members)
    if repair.title:
        yield f"{cost.severity}: {repair.title}: {repair.likely_cause}; {cost}"
    members = drop_other_planes(repair.members)
    for member in members[:MAX_MEMBERS]:
        yield f"  {member.kind}: {member.summary}" if repair.title else f"{member.kind}: {member.summary}; {cost}"
        yield from (f"  → {step}" for step in member.steps)
    if len(members) > MAX_MEMBERS:
        yield f"  and {len(members) - MAX_MEMBERS} more like these: --format json"


fabric_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Compare a fabric with its design, and draft designs."
)

EXIT_CODES = {"match": 0, "mismatch": 1, "partial": 2}

Design = Annotated[str, argument("DESIGN", "The FabricDesign's name. Default: the only one.")]
DesignOrFile = Annotated[
    str, option("--design DESIGN", "The FabricDesign's name, or the path of its file. Default: the only one.")
]
Dump = Annotated[
    Path,
    option(
        "--from FILE",
        "The output of ibnetdiscover, iblinkinfo -l, ibdiagnet, UFM or LLDP; - is stdin. The format is detected.",
        show_default=False,
    ),
]
Stderr = Annotated[
    Path | None,
    option("--stderr FILE", "The file with the tool's stderr, which alone reports lost packets.", show_default=False),
]


@fabric_app.command()
def compare(
    dump: Dump,
    stderr: Stderr = None,
    design: DesignOrFile = "",
    fleet: FleetDir = Path(),
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Compare a recorded discovery with a design.

    Exit codes: 0 match; 1 mismatch; 2 the discovery is partial or unreadable.
    """
    from assay.fabric.compare.compare import compare_cabling
    from assay.fabric.readers.format_detection import read_topology
    from assay.model.gc_pause import pause_gc

    with pause_gc():
        topology = load_compiled_design(fleet, design)
        discovery = read_topology(read_dump(dump), read_dump(stderr) if stderr else "")
        comparison = compare_cabling(topology, discovery)
    _print_comparison(comparison, format)
    raise typer.Exit(EXIT_CODES[comparison.verdict])


@fabric_app.command()
def scan(
    design: Design = "",
    deadline: Annotated[float, option("--deadline S", "Seconds for the discovery.", min=1)] = 60,
    fleet: FleetDir = Path(),
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Discover the fabric now, store the evidence, and compare it with the design.

    Exit codes: 0 match; 1 mismatch; 2 partial.
    """
    from assay.fabric.design.topology_cache import select_design
    from assay.fabric.scan import format_fabric_subject, judge_scan, run_fabric_scan
    from assay.observe.evidence_store import EvidenceStore

    workspace = Workspace(fleet)
    workspace.announce()
    selected = select_design(workspace.fleet, design)
    print(f"discovering the fabric {selected.name} …", file=sys.stderr)  # noqa: T201
    store = EvidenceStore(workspace.evidence_dir)
    last = store.latest(format_fabric_subject(selected))
    evidence = run_fabric_scan(workspace.fleet, selected, deadline, workspace.clock, last)
    store.store_latest(evidence)
    comparison = judge_scan(workspace.fleet, selected, evidence)
    _print_comparison(comparison, format)
    workspace.print_page(format, "fabric")
    raise typer.Exit(EXIT_CODES[comparison.verdict])


@fabric_app.command()
def evaluate(
    design: Design = "",
    days: Annotated[float, option("--days N", "Days before the newest scan.", min=0.01, max=366)] = 7,
    fleet: FleetDir = Path(),
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Evaluate the stored scans of a week: what changed since the week before, and the ports that stand out, ranked.

    Exit codes: 0 no port stands out; 1 some do, or something could not be judged; 2 there is no scan.
    """
    from assay.act.schedules.weekly_fabric import record_fabric_week
    from assay.fabric.design.topology_cache import select_design
    from assay.fabric.weekly.text_report import format_weekly_text, make_week_answer
    from assay.observe.evidence_store import EvidenceStore

    workspace = Workspace(fleet)
    selected, store = select_design(workspace.fleet, design), EvidenceStore(workspace.evidence_dir)
    now, reports = workspace.clock.now(), workspace.reports_dir
    evaluation, changes = record_fabric_week(workspace.fleet, store, reports, now, selected, days)
    if format == "json":
        print(format_answer(make_week_answer(evaluation, changes), indent=1))  # noqa: T201
    else:
        print(format_weekly_text(evaluation, changes))  # noqa: T201
        workspace.print_page(format, "fabric")
    raise typer.Exit(0 if evaluation.is_whole and not evaluation.ranked else 1)


@fabric_app.command()
def impact(
    element: Annotated[str, argument("ELEMENT", "A node, a switch or a port: n0005, spine-01, leaf-su01-r0[33].")],
    design: DesignOrFile = "",
    fleet: FleetDir = Path(),
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Show who loses links, and who is cut off, without a node, a switch, or the cable at a port.

    Exit codes: 0 shown; 2 the design has no such element.
    """
    from assay.fabric.design.impact import assess_failure

    answer = assess_failure(load_compiled_design(fleet, design), element)
    print("\n".join(answer.lines) if format == "text" else format_answer(answer, indent=1))  # noqa: T201


fabric_app.command()(learn)
fabric_app.command("import")(import_cabling_sheet)


def load_compiled_design(fleet: Path, design: str) -> CompiledTopology:
    """Return the compiled topology of a design, by its name or the path of its file; "" is the only design."""
    from assay.fabric.design.topology_cache import load_topology

    is_path = "/" in design or design.endswith((".yaml", ".yml")) or Path(design).is_file()
    file = Path(design) if is_path else None
    is_alone = file is not None and not (fleet / "inventory").is_dir()  # a learnt design has its own nodes
    return load_topology(fleet, "" if file else design, None if is_alone else Workspace(fleet).overlays, file)


def _print_comparison(comparison: FabricComparison, format: str) -> None:  # noqa: A002
    text = format_comparison(comparison) if format == "text" else format_answer(comparison.make_answer(), indent=1)
    print(text)  # noqa: T201
