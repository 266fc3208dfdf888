"""dossier: everything that a vendor asks about a returned node, in one archive. Proved by reading it back.

`reports/rma/<node>-<effect>.zip`: a page in front, then who it is (serial numbers of every part), its firmware, its
faults, its tests before and after, the repairs that were tried, the evidence that was judged, whole, and the photos
that lie in `<node>-<effect>.photos/` beside it. What it is about is noted in the intent: made again, it is the same.
"""

from __future__ import annotations

from assay.actions.action import Context, Facts, Intent, Verification
from assay.actions.rma.make import make, read_back
from assay.actions.rma.pinned import pinned
from assay.actions.rma.places import archive_of
from assay.model.errors import Trouble

patience_s = 0.0


def before(ctx: Context, intent: Intent) -> Facts:
    """Note what the dossier is about, as of now."""
    return pinned(ctx, intent.node)


def run(ctx: Context, intent: Intent) -> None:
    """Write the archive."""
    make(ctx, intent)


def verify(ctx: Context, intent: Intent) -> Verification:
    """Done when the archive is whole, is what its manifest says, and is this effect's."""
    try:
        read_back(ctx.reports, intent.node, intent.effect)
    except Trouble as trouble:
        return Verification(False, str(trouble.what))
    shown = str(archive_of(ctx.reports, intent.node, intent.effect).relative_to(ctx.reports.parent))
    return Verification(True, f"{shown} is written", {"path": shown})
