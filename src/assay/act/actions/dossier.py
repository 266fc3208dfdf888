"""The action `dossier`: writes an archive with all that a vendor asks about a returned node. Reading it proves it.

`reports/rma/NODE-EFFECT.zip` holds a page, the serial numbers of all parts, firmware, faults, the failing checks before
and after each repair, and the judged evidence. The intent fixes what it is about: built again, it is the same.
"""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.remedies.dossier_build import locate_dossier, read_dossier, write_dossier
from assay.act.remedies.dossier_content import read_dossier_facts
from assay.model.errors import AssayError

patience_s = 0.0
undone_by = ""
"""One file more does no harm."""


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read what the dossier is about, as of now."""
    return read_dossier_facts(context, intent.node)


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Write the archive."""
    write_dossier(context, intent)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if the archive is complete, fits its manifest, and belongs to this effect."""
    try:
        read_dossier(context.reports, intent.node, intent.effect)
    except AssayError as error:
        return EffectVerification(False, error.what)
    path = locate_dossier(context.reports, intent.node, intent.effect)
    shown = str(path.relative_to(context.reports.parent))
    return EffectVerification(True, f"{shown} is written", {"path": shown})
