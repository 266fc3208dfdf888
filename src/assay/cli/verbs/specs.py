"""`assay specs`: a draft node spec, made from a good node's evidence; and CODEOWNERS, made from the owners of specs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import FleetDir, argument, complete_nodes, option
from assay.cli.workspace import Workspace, require_known
from assay.declare.home import require_repository
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceBasis, EvidenceDocument
from assay.model.specs.load_parts import GOLDEN_PARTS

specs_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Draft specs from evidence, and make CODEOWNERS of their owners."
)


@specs_app.command()
def learn(
    nodes: Annotated[
        list[str], argument("NODE…", "A node in good condition; two for --golden.", complete=complete_nodes)
    ],
    golden: Annotated[bool, option("--golden", "Draft golden digests from what several nodes computed alike.")] = False,
    part: Annotated[
        str, option("--part PART", f"With --golden, of which load: {', '.join(GOLDEN_PARTS)}.")
    ] = GOLDEN_PARTS[0],
    fleet: FleetDir = Path(),
) -> None:
    """Draft a node spec from the last evidence of a good node, on stdout. A person must review each `# review:`.

    With `--golden`, draft golden digests from the battery, or from training (`--part`), of at least two nodes whose
    GPUs all agree.

    Exit codes: 0 drafted; 2 there is no evidence of such a node, or no digests on which the nodes agree.
    """
    workspace = Workspace(fleet.resolve())
    if golden:  # it reads no spec: the shell may have made the new, empty one already
        require_known([part], GOLDEN_PARTS, "part with digests")
        typer.echo(_draft_golden_digests(workspace, nodes, part), nl=False)
    elif len(nodes) > 1:
        raise AssayError("a node spec is drafted from one node", fix="name one node, or add --golden")
    else:
        require_known(nodes, workspace.fleet.nodes, "node")
        typer.echo(_draft_node_spec(workspace, nodes[0]), nl=False)


def _draft_golden_digests(workspace: Workspace, nodes: list[str], part: str) -> str:
    from datetime import UTC, datetime

    from assay.validate.active.golden import format_golden_spec, learn_golden, read_golden_run
    from assay.validate.active.unit_results import UnreadableRun

    runs, voters, fix = {}, dict[str, str](), "take a node whose machine is the declared one"
    for node in dict.fromkeys(nodes):
        try:
            evidence = _read_evidence(workspace, node)
            if stranger := evidence.find_stranger(workspace.fleet.nodes[node].serial):
                raise AssayError(f"{node} has no vote: its evidence is of another machine: {stranger}", fix=fix)
            for gpu in EvidenceBasis.of_document(evidence).gpus.split():
                if (other := voters.setdefault(gpu, node)) != node:
                    raise AssayError(f"{other} and {node} have one vote: the same GPU answers for both", fix=fix)
            runs[node] = read_golden_run(evidence, part)
        except UnreadableRun as unreadable:
            raise AssayError(
                f"{node} has no {part} in its last evidence: {unreadable.reason}",
                fix=f"run: assay observe {node} --active {part}",
            ) from None
    key, digests = learn_golden(runs)
    return format_golden_spec(key, list(runs), digests, datetime.now(UTC).date())


def _draft_node_spec(workspace: Workspace, node: str) -> str:
    from assay.declare.repository.tree import WorkingFolder
    from assay.declare.suite_source import parse_suites
    from assay.observe.spec_draft import draft_node_spec
    from assay.observe.spec_values import ObservedNode

    declared, evidence = workspace.fleet.nodes[node], _read_evidence(workspace, node)
    observed = ObservedNode(evidence, declared, workspace.fleet.node_specs.get(declared.spec), workspace.fleet.bundles)
    limits = {limit.name for limit in parse_suites(WorkingFolder(workspace.root)).limits}
    return draft_node_spec(observed, limits)


def _read_evidence(workspace: Workspace, node: str) -> EvidenceDocument:
    from assay.observe.evidence_store import EvidenceStore

    evidence = EvidenceStore(workspace.evidence_dir).latest(node)
    if evidence is None:
        raise AssayError(
            f"there is no evidence of {node}", where=str(workspace.evidence_dir), fix=f"run: assay observe {node}"
        )
    return evidence


@specs_app.command()
def codeowners(
    fleet: FleetDir = Path(),
    check: Annotated[bool, option("--check", "Write nothing; say whether the file is current.")] = False,
) -> None:
    """Write CODEOWNERS from the owners of all specs, so that the forge asks the right team to review a change.

    A spec of the kind CodeOwners maps owners to teams of GitHub or GitLab.

    Exit codes: 0 written or current; 1 with --check, the file is missing or not current; 2 a spec cannot be read, or
    without --check no spec maps owners to teams.
    """
    from assay.declare.repository.tree import WorkingFolder
    from assay.declare.rules.repository_files import FILE, format_code_owners, read_code_owners
    from assay.declare.spec_reader import read_specs

    require_repository(fleet)
    tree = WorkingFolder(fleet.resolve())
    specs, refused = read_specs(tree)
    if refused:
        first = refused[0].problems[0]
        raise AssayError(f"a spec cannot be read: {first.message}", where=first.where, fix="run: assay check")
    text = format_code_owners(specs)
    if not text and check:
        typer.echo("no spec maps owners to teams: there is nothing to check")
        return
    if not text:
        raise AssayError("no spec maps owners to teams", where="specs", fix="write one: docs/ci.md says how")
    if read_code_owners(tree) == text:
        typer.echo(f"{FILE} is current")
    elif check:
        typer.echo(f"{FILE} is not the one that the owners of the specs give: run assay specs codeowners")
        sys.exit(1)
    else:
        (tree.root / FILE).write_text(text, encoding="utf-8")
        typer.echo(f"{FILE}: {text.count(chr(10)) - 1} lines")
