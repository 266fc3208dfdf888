"""`assay fabric learn` and `import`: a design to begin with, from what is there or from a sheet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.desk import Desk, FleetDir
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.model.fleet import Fleet


def learn(
    dump: Annotated[Path, typer.Option("--from", help="A discovery of a fabric that is known to be good; - is stdin.")],
    name: Annotated[str, typer.Option(help="What the design is to be called.")] = "learned",
    stderr: Annotated[Path | None, typer.Option(help="What the tool said on stderr.")] = None,
) -> None:
    """Draft a FabricDesign from a discovery: every cable by GUID and port. A partial discovery is refused."""
    from assay.fabric.learn import learn as learning
    from assay.fabric.readers import topology

    print(learning(topology(text_of(dump), text_of(stderr) if stderr else ""), name).as_yaml(), end="")  # noqa: T201


def import_sheet(
    sheet: Annotated[Path, typer.Argument(help="A point-to-point sheet as CSV; - is stdin.")],
    name: Annotated[str, typer.Option(help="What the design is to be called.")] = "imported",
    dump: Annotated[
        Path | None, typer.Option("--from", help="A discovery that gives GUIDs to the names in the sheet.")
    ] = None,
    adapters: Annotated[
        Path | None, typer.Option(help="CSV `port,adapter`: what a node's ports in the sheet are called (1/2,mlx5_3).")
    ] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Draft a FabricDesign from a point-to-point sheet. Exit codes: 0, 1 some lines were not read, 2 none was."""
    from assay.fabric.imported import Import
    from assay.fabric.readers import topology
    from assay.fabric.sheet import adapter_mapping, read

    found = topology(text_of(dump)) if dump else None
    mapping = adapter_mapping(text_of(adapters)) if adapters else {}
    work = Import(read(text_of(sheet)), _declared(fleet), found, mapping)
    draft = work.draft(name)
    for line, said in sorted(work.sheet.problems):
        print(f"{sheet}:{line}: {said}", file=sys.stderr)  # noqa: T201
    if not draft.cables:
        raise Trouble("no line of it is a cable", where=str(sheet), fix="correct the lines above")
    print(draft.as_yaml(), end="")  # noqa: T201
    raise typer.Exit(1 if work.sheet.problems else 0)


def _declared(root: Path) -> Fleet:
    """Return the fleet; an empty one where there is no inventory."""
    from assay.model.fleet import Fleet

    return Desk(root).fleet if (root / "inventory").is_dir() else Fleet(root, {})


def text_of(dump: Path) -> str:
    """Return what a file says, or stdin for -."""
    try:
        return sys.stdin.read() if str(dump) == "-" else dump.read_text(errors="replace")
    except OSError as error:
        raise Trouble(f"cannot read the discovery: {error.strerror}", where=str(dump)) from error
