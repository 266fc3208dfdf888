"""The action `netboot`: starts a node from the image that its Provisioning declares. Its own probe proves the start.

A node that no Provisioning holds for is only waited for: something else boots it.
"""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification, is_handed_over
from assay.act.boot.network_boot import DOCUMENT, boot_declared_image, list_own_attempts, read_running_boot
from assay.act.remedies.boot import read_boot_facts
from assay.model.errors import AssayError

patience_s = 600.0
undone_by = ""
"""A boot cannot be undone. Checks that passed before it no longer count."""


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the boot that runs now."""
    return read_boot_facts(context, intent.node)


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Start the node until it runs an attempt of this effect, as often as the Provisioning allows."""
    boot_declared_image(context, intent)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if the node's kernel shows an attempt of this effect. It cannot tell while the node does not answer."""
    own = list_own_attempts(context, intent)
    try:
        running = read_running_boot(context.fleet.nodes[intent.node])
    except AssayError as error:
        has_ended = bool(own) and bool(own[-1].failure)
        return EffectVerification(False if has_ended else None, str(error))
    facts: EffectFacts = {"boot_id": running.boot_id}
    boot = f"boot {running.boot_id[:8]}"
    if context.fleet.provisioning_of(intent.node) is None:
        reason = f"no Provisioning holds for its pool, and it runs {boot}"
        return EffectVerification(not is_handed_over(context, intent.node), reason, facts)
    for attempt in own:
        # Where another tool installs, the boot names no attempt: the probe saw its start, and its image runs.
        is_proven = attempt.proven_by == DOCUMENT and not attempt.failure and not running.attempt
        is_installed = is_proven and running.image.startswith(f"{attempt.image}:{attempt.image_version}:")
        if running.attempt == attempt.name or is_installed:
            reason = f"runs image {attempt.image} ({attempt.image_version}) since {boot}"
            return EffectVerification(True, reason, {**facts, "attempt": attempt.name})
    return EffectVerification(False, f"runs {boot}, which this effect did not start", facts)
