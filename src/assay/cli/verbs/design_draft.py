"""`assay fabric learn` and `assay fabric import`: a draft design from a discovery, or from a list of cables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import FleetDir
from assay.cli.verbs.dump_file import read_dump
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.fabric.discovery import FabricDiscovery
    from assay.model.fleet import Fleet


def learn(
    dump: Annotated[
        Path,
        typer.Option(
            "--from", metavar="FILE", help="A discovery of a fabric in good condition; - is stdin.", show_default=False
        ),
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="The name of the design.")] = "learned",
    stderr: Annotated[Path | None, typer.Option(metavar="FILE", help="The tool's stderr.")] = None,
    inventory: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the nodes with their adapters' GUIDs here, not into the design."),
    ] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Draft a FabricDesign from a discovery, on stdout: the pattern that most cables follow, and what breaks it.

    The draft is rules. Only where most cables follow no pattern, it lists every cable.

    Exit codes: 0 drafted; 2 the discovery is partial or unreadable.
    """
    from assay.declare.starter.shipped_specs import find_adapter_names
    from assay.fabric.learn.design_draft import draft_from_discovery
    from assay.fabric.learn.fat_tree_inference import NoPattern
    from assay.fabric.learn.host_recognition import find_hosts, list_inventory_adapters
    from assay.fabric.learn.judged_design import judge_discovery
    from assay.fabric.learn.rule_draft import draft_inventory, draft_rules
    from assay.fabric.readers.format_detection import read_topology
    from assay.model.gc_pause import pause_gc

    with pause_gc():
        discovery = read_topology(read_dump(dump), read_dump(stderr) if stderr else "")
        _print_notes(dump, discovery)
        known = _load_fleet_or_empty(fleet)
        adapters = find_hosts(discovery.devices.values(), find_adapter_names(known), list_inventory_adapters(known))
        try:
            judged = None if discovery.partial else judge_discovery(discovery, name, known, adapters)
            why = ""
        except NoPattern as none:
            judged, why = None, str(none)
    if inventory and judged:
        inventory.write_text(draft_inventory(judged))
    if judged:
        print(draft_rules(judged, discovery, (judged.nodes if inventory else known.nodes).keys()), end="")  # noqa: T201
    else:
        print(draft_from_discovery(discovery, name, adapters, why).as_yaml(), end="")  # noqa: T201


def import_cabling_sheet(
    sheet: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV with the columns device,port,device,port, or a topology file (.topo); - is stdin.",
            show_default=False,
        ),
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="The name of the design.")] = "imported",
    dump: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="A discovery that maps the names in the file to GUIDs."),
    ] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Draft a FabricDesign from a list of cables (CSV) or a topology file, on stdout.

    Exit codes: 0 drafted; 1 some lines were not read (stderr lists them); 2 no line was read.
    """
    from assay.fabric.learn.cabling_file import CablingDraft, read_cabling_file
    from assay.fabric.readers.format_detection import read_topology

    discovery = read_topology(read_dump(dump)) if dump else None
    if dump and discovery:
        _print_notes(dump, discovery)
    read = read_cabling_file(read_dump(sheet))
    draft = CablingDraft(read, _load_fleet_or_empty(fleet), discovery).draft(name)
    for line, problem in sorted(read.problems):
        print(f"{sheet}:{line}: {problem}", file=sys.stderr)  # noqa: T201
    if not draft.cables:
        raise AssayError("no line of the file is a cable", where=str(sheet), fix="correct the lines listed above")
    print(draft.as_yaml(), end="")  # noqa: T201
    raise typer.Exit(1 if read.problems else 0)


def _print_notes(dump: Path, discovery: FabricDiscovery) -> None:
    """Tell on stderr which lines of a discovery were skipped."""
    for note in discovery.notes:
        print(f"{dump}: {note}", file=sys.stderr)  # noqa: T201


def _load_fleet_or_empty(root: Path) -> Fleet:
    """Return the fleet, or an empty one if there is no inventory."""
    from assay.model.fleet import Fleet

    return Workspace(root).fleet if (root / "inventory").is_dir() else Fleet(root, {})
