"""`assay fabric`: the cabling that is, against the cabling that was designed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.fabric_draft import import_sheet, learn, text_of
from assay.cli.fabric_evaluate import evaluate
from assay.cli.fabric_impact import impact
from assay.cli.fabric_plan import DesignOrFile, plan_of

if TYPE_CHECKING:
    from assay.fabric.compare import Comparison

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Compare the InfiniBand fabric with its design.")

app.command()(learn)
app.command("import")(import_sheet)
app.command()(evaluate)
app.command()(impact)

EXIT = {"match": 0, "mismatch": 1, "partial": 2}


@app.command()
def compare(
    dump: Annotated[
        Path, typer.Option("--from", help="What ibnetdiscover, iblinkinfo -l, ibdiagnet or UFM printed; - is stdin.")
    ],
    design: DesignOrFile = "",
    stderr: Annotated[Path | None, typer.Option(help="What it said on stderr; lost packets show nowhere else.")] = None,
    fleet: FleetDir = Path(),
    format: Format = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Compare a recorded discovery with a design. Exit codes: 0 match, 1 mismatch, 2 partial or unreadable."""
    from assay.fabric import compare as comparing
    from assay.fabric.many import many_objects
    from assay.fabric.readers import topology

    with many_objects():
        plan = plan_of(fleet, design)
        comparison = comparing.compare(plan, topology(text_of(dump), text_of(stderr) if stderr else ""))
    _tell(comparison, format)


@app.command()
def scan(
    design: Annotated[str, typer.Argument(help="The FabricDesign's name.")] = "",
    deadline: Annotated[float, typer.Option(help="Seconds that the discovery may take.", min=1)] = 60,
    fleet: FleetDir = Path(),
    format: Format = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Discover the fabric now, keep the evidence and compare. Exit codes: 0 match, 1 mismatch, 2 partial."""
    from assay.fabric import scan as scanning
    from assay.fabric.compiled import chosen as choose
    from assay.observe.store import EvidenceStore

    desk = Desk(fleet)
    chosen = choose(desk.fleet, design)
    print(f"discovering the fabric {chosen.name} …", file=sys.stderr)  # noqa: T201
    store = EvidenceStore(desk.evidence)
    evidence = scanning.scan(desk.fleet, chosen, deadline, desk.clock, store.latest(scanning.subject_name(chosen)))
    store.put(evidence)
    _tell(scanning.judge(desk.fleet, chosen, evidence), format)


def _tell(comparison: Comparison, format: str) -> None:  # noqa: A002
    say: Callable[[Comparison], str] = _as_text if format == "text" else lambda one: json.dumps(one.as_json(), indent=1)
    print(say(comparison))  # noqa: T201
    raise typer.Exit(EXIT[comparison.verdict])


def _as_text(comparison: Comparison) -> str:
    """Say a clean fabric in one line, anything else in one paragraph per discrepancy."""
    lines = [comparison.summary]
    lines += [f"  could not tell: {problem}" for problem in comparison.problems]
    for one in comparison.discrepancies:
        lines += ["", f"{one.kind}: {one.summary}", *(f"  → {step}" for step in one.steps)]
    return "\n".join(lines)
