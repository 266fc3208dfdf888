"""dossier: everything that a vendor asks about a returned node, in one archive. Proved by reading it back.

`reports/rma/<node>-<effect>.zip`: a page in front, then who it is (serial numbers of every part), its firmware, its
faults, its tests before and after, the repairs that were tried, the evidence that was judged, whole, and the photos
that lie in `<node>-<effect>.photos/` beside it. What it is about is noted in the intent: made again, it is the same.
"""

from __future__ import annotations

from assay.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.actions.rma.dossier_archive import locate_dossier
from assay.actions.rma.dossier_build import read_dossier, write_dossier
from assay.actions.rma.dossier_content import read_dossier_facts
from assay.model.errors import AssayError

patience_s = 0.0


def before(ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Note what the dossier is about, as of now."""
    return read_dossier_facts(ctx, intent.node)


def run(ctx: ActionContext, intent: EffectIntent) -> None:
    """Write the archive."""
    write_dossier(ctx, intent)


def verify(ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done when the archive is whole, is what its manifest says, and is this effect's."""
    try:
        read_dossier(ctx.reports, intent.node, intent.effect)
    except AssayError as trouble:
        return EffectVerification(False, str(trouble.what))
    shown = str(locate_dossier(ctx.reports, intent.node, intent.effect).relative_to(ctx.reports.parent))
    return EffectVerification(True, f"{shown} is written", {"path": shown})
