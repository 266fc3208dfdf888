"""Gathers the week of a fabric from its stored scans: kept as evidence, which the checks judge, and as a page."""

from __future__ import annotations

import sys
from collections.abc import Collection

from assay.cli.desk import Desk
from assay.fabric.design import plan
from assay.fabric.many import many_objects
from assay.fabric.scan import subject_name
from assay.fabric.weekly.evaluation import Evaluation, evaluate
from assay.fabric.weekly.gather import gather
from assay.fabric.weekly.kept import as_evidence, from_evidence, week_name
from assay.fabric.weekly.page import as_page
from assay.fabric.weekly.rails import rails_of
from assay.fabric.weekly.week import DAYS
from assay.model.design import FabricDesign
from assay.model.errors import Trouble
from assay.observe.store import EvidenceStore, write_whole


def look_at(desk: Desk, design: FabricDesign, days: float = DAYS) -> Evaluation:
    """Evaluate the stored scans of the last `days`. Raises Trouble for a fabric that was never scanned.

    A whole week is kept as evidence, and its page in `reports/weekly/`; a look at any other time is not kept.
    """
    store = EvidenceStore(desk.evidence)
    latest = store.latest(subject_name(design))
    if latest is None:
        raise Trouble(f"the fabric {design.name} was never scanned", fix=f"run `assay fabric scan {design.name}`")
    cables = list(plan(design, desk.fleet).cables)
    with many_objects():
        document = as_evidence(gather(design.name, cables, latest, store.get, desk.clock.now(), days))
        one = evaluate(from_evidence(document), cables, rails_of(desk.fleet, design), design.limits)
    if days == DAYS:
        store.put(document)
        write_whole(desk.reports / "weekly" / f"{design.name}.html", as_page(one).encode())
    return one


def look_at_weeks(desk: Desk, nodes: Collection[str], *, anew: bool) -> None:
    """Evaluate the week of each fabric that one of `nodes` hangs on, where it was ever scanned.

    Unless `anew`, a week that ends with the newest scan is left as it is.
    """
    names = dict.fromkeys(str(desk.fleet.nodes[node].variables.get("fabric", "")) for node in nodes)
    for design in (desk.fleet.designs[name] for name in names if name in desk.fleet.designs):
        if _is_due(EvidenceStore(desk.evidence), design, anew=anew):
            print(f"looking at a week of the fabric {design.name} …", file=sys.stderr)  # noqa: T201
            look_at(desk, design)
            print(f"its page is {desk.reports / 'weekly' / design.name}.html", file=sys.stderr)  # noqa: T201


def _is_due(store: EvidenceStore, design: FabricDesign, *, anew: bool) -> bool:
    latest = store.latest(subject_name(design))
    week = None if anew else store.latest(week_name(design.name))
    return latest is not None and (week is None or week.read("week", "newest").value != latest.digest())
