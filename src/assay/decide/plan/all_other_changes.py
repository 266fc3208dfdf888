"""Lists every change that no other section of the plan shows, so that none is merged unseen."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from assay.decide.plan.changed_files import list_file_changes
from assay.decide.plan.excuse_changes import list_check_declaration_changes, list_known_issue_changes
from assay.decide.plan.fleet_revision import FleetRevision
from assay.decide.plan.other_change import OtherChange, list_all_pools
from assay.decide.plan.other_spec_changes import list_other_spec_changes
from assay.decide.plan.schedule_and_gate_changes import list_gate_changes, list_schedule_changes
from assay.decide.plan.signer_changes import list_signer_changes


def list_other_changes(
    before: FleetRevision, after: FleetRevision, rewritten_checks: Collection[str], shown_specs: Collection[str]
) -> tuple[OtherChange, ...]:
    """Return the changes by topic. Other sections show `rewritten_checks` and `shown_specs` (`Kind/name`)."""
    return (
        *_list_unread(before, after),
        *list_schedule_changes(before, after),
        *list_gate_changes(before, after),
        *list_known_issue_changes(before, after),
        *list_check_declaration_changes(before, after),
        *list_signer_changes(before, after),
        *list_other_spec_changes(before, after, shown_specs),
        *list_file_changes(before, after, rewritten_checks),
    )


def _list_unread(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield the parts of the base that cannot be read: what the merge changes there is not known."""
    for line, why in before.unread:
        what = f"{before.name} cannot be read here ({why}): what the merge changes in this file is not known"
        yield OtherChange("unread", what, line, list_all_pools(after))
