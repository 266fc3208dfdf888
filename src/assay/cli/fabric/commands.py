"""`assay fabric`: the cabling that is, against the cabling that was designed.

`assay fabric evaluate`: a week of stored scans, for the engineer who looks after the fabric.

Which compiled design a verb of `assay fabric` works with.

`assay fabric impact`: what the loss of one device or cable costs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.fabric.design_draft import import_cabling_sheet, learn, read_dump
from assay.cli.workspace import FleetDir, OutputFormat, Workspace

PageFormat = Annotated[
    Literal["text", "json", "html"],
    typer.Option("--format", help="text for people, json for machines, html for a page with pictures."),
]


def evaluate(
    design: Annotated[str, typer.Argument(help="The FabricDesign's name.")] = "",
    days: Annotated[float, typer.Option(help="How far back from the newest scan to look.", min=0.01, max=366)] = 7,
    fleet: FleetDir = Path(),
    format: PageFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Evaluate the stored scans of a week. Exit codes: 0 nothing stands out, 1 something does, 2 there is no scan."""
    from assay.cli.fabric.weekly_evaluation import evaluate_fabric_week
    from assay.fabric.topology.topology_cache import select_design
    from assay.fabric.weekly.text_report import format_weekly_json, format_weekly_text

    desk = Workspace(fleet)
    one = evaluate_fabric_week(desk, select_design(desk.fleet, design), days)
    if format == "html":
        from assay.fabric.weekly.page import render_weekly_page

        print(render_weekly_page(one))  # noqa: T201
    else:
        print(format_weekly_text(one) if format == "text" else json.dumps(format_weekly_json(one), indent=1))  # noqa: T201
    raise typer.Exit(1 if one.ranked else 0)


if TYPE_CHECKING:
    from assay.fabric.topology.compiled_topology import CompiledTopology

DesignOrFile = Annotated[str, typer.Option("--design", help="The FabricDesign's name, or the path of its file.")]


def load_compiled_design(fleet: Path, design: str) -> CompiledTopology:
    """Return the plan of a design of the fleet, or of the file that `design` names; "" is the only one there is."""
    from assay.fabric.topology.topology_cache import load_topology

    file = Path(design) if _is_path(design) else None
    return load_topology(fleet, "" if file else design, Workspace(fleet).overlays, file)


def _is_path(design: str) -> bool:
    return "/" in design or design.endswith((".yaml", ".yml")) or Path(design).is_file()


def impact(
    what: Annotated[str, typer.Argument(help="A node, a switch, or a port: n0005, spine-01, leaf-su01-r0[33].")],
    design: DesignOrFile = "",
    fleet: FleetDir = Path(),
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Say what the fabric lacks without a node, a switch, or the cable at a port. Exit code 2: no such thing."""
    from assay.fabric.topology.failure_impact import assess_failure as of

    told = of(load_compiled_design(fleet, design), what)
    print("\n".join(told.lines) if format == "text" else json.dumps(told.as_json(), indent=1))  # noqa: T201


if TYPE_CHECKING:
    from assay.fabric.comparison.compare import FabricComparison

fabric_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Compare the InfiniBand fabric with its design."
)

fabric_app.command()(learn)
fabric_app.command("import")(import_cabling_sheet)
fabric_app.command()(evaluate)
fabric_app.command()(impact)

EXIT_CODES = {"match": 0, "mismatch": 1, "partial": 2}


@fabric_app.command()
def compare(
    dump: Annotated[
        Path, typer.Option("--from", help="What ibnetdiscover, iblinkinfo -l, ibdiagnet or UFM printed; - is stdin.")
    ],
    design: DesignOrFile = "",
    stderr: Annotated[Path | None, typer.Option(help="What it said on stderr; lost packets show nowhere else.")] = None,
    fleet: FleetDir = Path(),
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Compare a recorded discovery with a design. Exit codes: 0 match, 1 mismatch, 2 partial or unreadable."""
    from assay.fabric.comparison import compare as comparing
    from assay.fabric.readers.format_detection import read_topology
    from assay.model.gc_pause import pause_gc

    with pause_gc():
        plan = load_compiled_design(fleet, design)
        comparison = comparing.compare_cabling(
            plan, read_topology(read_dump(dump), read_dump(stderr) if stderr else "")
        )
    _print_comparison(comparison, format)


@fabric_app.command()
def scan(
    design: Annotated[str, typer.Argument(help="The FabricDesign's name.")] = "",
    deadline: Annotated[float, typer.Option(help="Seconds that the discovery may take.", min=1)] = 60,
    fleet: FleetDir = Path(),
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Discover the fabric now, keep the evidence and compare. Exit codes: 0 match, 1 mismatch, 2 partial."""
    from assay.fabric import scan as scanning
    from assay.fabric.topology.topology_cache import select_design as choose
    from assay.observe.evidence_store import EvidenceStore

    desk = Workspace(fleet)
    chosen = choose(desk.fleet, design)
    print(f"discovering the fabric {chosen.name} …", file=sys.stderr)  # noqa: T201
    store = EvidenceStore(desk.evidence_dir)
    evidence = scanning.run_fabric_scan(
        desk.fleet, chosen, deadline, desk.clock, store.latest(scanning.format_fabric_subject(chosen))
    )
    store.store_latest(evidence)
    _print_comparison(scanning.judge_scan(desk.fleet, chosen, evidence), format)


def _print_comparison(comparison: FabricComparison, format: str) -> None:  # noqa: A002
    say: Callable[[FabricComparison], str] = (
        _format_comparison if format == "text" else lambda one: json.dumps(one.as_json(), indent=1)
    )
    print(say(comparison))  # noqa: T201
    raise typer.Exit(EXIT_CODES[comparison.verdict])


def _format_comparison(comparison: FabricComparison) -> str:
    """Say a clean fabric in one line, anything else in one paragraph per discrepancy."""
    lines = [comparison.summary]
    lines += [f"  could not tell: {problem}" for problem in comparison.problems]
    for one in comparison.discrepancies:
        lines += ["", f"{one.kind}: {one.summary}", *(f"  → {step}" for step in one.steps)]
    return "\n".join(lines)
