"""`assay specs learn NODE`: draft a node spec from a good node's evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.desk import Desk, FleetDir
from assay.model.errors import Trouble

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Write specs from what is there.")


@app.callback()
def _specs() -> None:
    """Write specs from what is there."""


@app.command()
def learn(node: Annotated[str, typer.Argument(metavar="NODE")], fleet: FleetDir = Path()) -> None:
    """Draft the spec of a good node from its last evidence, on stdout, for a person to review.

    Exit 0: drafted; 2: there is no evidence.
    """
    from assay.fleet.suites import read_suites
    from assay.fleet.tree import Folder
    from assay.observe.learn import draft
    from assay.observe.seen import Seen
    from assay.observe.store import EvidenceStore

    desk = Desk(fleet.resolve())
    declared = desk.fleet.nodes.get(node)
    if declared is None:
        raise Trouble(f"the inventory has no node {node}", where=str(desk.root / "inventory"))
    evidence = EvidenceStore(desk.evidence).latest(node)
    if evidence is None:
        raise Trouble(f"there is no evidence of {node}", where=str(desk.evidence), fix=f"`assay observe {node}`")
    seen = Seen(evidence, declared, desk.fleet.node_specs.get(declared.spec), desk.fleet.bundles)
    wanted = {limit.name for limit in read_suites(Folder(desk.root)).limits}
    typer.echo(draft(seen, wanted), nl=False)
