"""Which image a node boots: the declared one, or the one that it runs until the rollout of another one reaches it."""

from __future__ import annotations

from assay.act.actions.action import ActionContext
from assay.decide.rollouts.rollout_history import ROLLOUT_KINDS, project_rollouts
from assay.model.entries.rollout_entries import CommitAdoptedEntry
from assay.model.specs.image_spec import Image
from assay.model.specs.kernel_arguments import IMAGE, find_kernel_argument


def choose_boot_image(context: ActionContext, node: str) -> Image | None:
    """Return the image for a start that is not for the image's own sake, None if none is declared.

    A node that restarts for another reason must not be ahead of the canary. While the declared image waits for a wave,
    or for the controller, the node boots the one that it ran when it was last read, if the fleet still declares that.
    """
    declared, running = context.fleet.image_of(node), _find_running_image(context, node)
    if declared is None or running is None or running.label == declared.label:
        return declared
    return running if _must_wait(context, node) else declared


def _find_running_image(context: ActionContext, node: str) -> Image | None:
    """Return the image of the fleet that the node ran when it was last read."""
    evidence = context.evidence.latest(node)
    command_line = evidence.read("probe", "host", "cmdline") if evidence else None
    label = find_kernel_argument(str(command_line.value), IMAGE) if command_line else ""
    return next((image for image in context.fleet.images.values() if image.label == label), None)


def _must_wait(context: ActionContext, node: str) -> bool:
    """Whether the node's turn has not come: its wave, or for the controller to bring the fleet to this commit."""
    history = project_rollouts(context.ledger.entries(kinds=ROLLOUT_KINDS))
    rollout = history.find_active()
    if rollout and (member := rollout.members.get(node)):
        return not member.is_ordered_out and not member.proof
    commit = context.fleet.commit
    return bool(history.adopted and commit and CommitAdoptedEntry.read(history.adopted).commit != commit)
