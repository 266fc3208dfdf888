"""`assay specs learn NODE`: a draft node spec, made from a good node's evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.name_check import require_known
from assay.cli.options import FleetDir
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

specs_app = typer.Typer(add_completion=False, no_args_is_help=True)


@specs_app.callback()
def _specs() -> None:
    """Draft specs from evidence."""


@specs_app.command()
def learn(
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node in good condition.", show_default=False)],
    fleet: FleetDir = Path(),
) -> None:
    """Draft a node spec from the last evidence of a good node, on stdout. A person must review each `# review:`.

    Exit codes: 0 drafted; 2 there is no evidence of this node.
    """
    from assay.fleet.repository_tree import WorkingFolder
    from assay.fleet.suite_source import parse_suites
    from assay.observe.evidence_store import EvidenceStore
    from assay.observe.spec_learning.evidence_lookup import ObservedNode
    from assay.observe.spec_learning.spec_draft import draft_node_spec

    workspace = Workspace(fleet.resolve())
    require_known([node], workspace.fleet.nodes, "node")
    declared = workspace.fleet.nodes[node]
    evidence = EvidenceStore(workspace.evidence_dir).latest(node)
    if evidence is None:
        raise AssayError(
            f"there is no evidence of {node}", where=str(workspace.evidence_dir), fix=f"run: assay observe {node}"
        )
    observed = ObservedNode(evidence, declared, workspace.fleet.node_specs.get(declared.spec), workspace.fleet.bundles)
    limits = {limit.name for limit in parse_suites(WorkingFolder(workspace.root)).limits}
    typer.echo(draft_node_spec(observed, limits), nl=False)
