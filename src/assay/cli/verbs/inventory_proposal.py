"""Proposes the inventory of machines that were expected and are there: a branch of one commit for each delivery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from assay.act.boot.inventory_draft import draft_inventory
from assay.act.boot.machine_matching import MachineMatch
from assay.act.boot.proposal_branch import propose_file, read_committed_file
from assay.cli.workspace import Workspace
from assay.model.text.text_lists import fold_names, format_count


def propose_deliveries(workspace: Workspace, matches: Sequence[MachineMatch]) -> Iterator[str]:
    """Commit the drafts, and yield what people are told. Raises AssayError where a draft cannot be committed."""
    by_delivery = defaultdict(list)
    for match in matches:
        if match.verdict == "expected":
            by_delivery[match.delivery].append(match)
    if not by_delivery:
        yield "there is nothing to propose: no expected machine was seen that is no node yet"
    for delivery, found in sorted(by_delivery.items()):
        path, branch = f"inventory/{delivery}.yml", f"discover/{delivery}"
        text = draft_inventory(workspace.fleet, delivery, found, read_committed_file(workspace.root, path))
        names = ", ".join(fold_names(match.node for match in found))
        proposal = propose_file(workspace.root, branch, path, text, f"inventory: add {names} of delivery {delivery}")
        yield f"{branch} has {format_count(len(found), 'new node')} in {path} ({proposal.commit[:10]}): {names}"
        yield f"  git push -u origin {branch}   # and open its pull request; `assay plan` shows what merging it does"
        yield from (f"  before the merge, settle {mistake}" for mistake in proposal.mistakes)
