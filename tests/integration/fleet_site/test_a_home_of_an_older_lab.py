"""A home in which a lab of an earlier version wrote among the fleet's own: nobody acts on it, and nobody loses it."""

from __future__ import annotations

from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.integration.fleet_site.fleet_home import read_home
from tests.integration.fleet_site.machines_over_ssh import needs_sshd
from tests.integration.fleet_site.rehearsal_walk import MakeWalk

pytestmark = needs_sshd
AT = "2026-11-21T12:00:00+00:00"


def test_a_home_in_which_an_older_lab_wrote(make_walk: MakeWalk) -> None:
    """Once, the lab was in `.assay/lab`, and its ledger was the fleet's: nobody acts on that, and nobody loses it."""
    walk = make_walk(2)
    ledger = Ledger.open(walk.root / ".assay" / "ledger.sqlite")
    ledger.append(LedgerEntry("e1", AT, "node.enrolled", "gpu-01", {"pool": "h100-a", "state": "production"}))
    ledger.close()
    older = walk.root / ".assay" / "lab"
    older.mkdir()
    (older / "clock.json").write_text('{"origin": "2026-01-05T08:00:00+00:00", "anchor": 0, "rate": 60}')
    walk.before = read_home(walk.root)
    for order in ("hold gpu-01 --reason rehearsal", "reconcile --once", "schedules run"):
        refused = walk.type(order, shell="", flag="")
        assert (refused.code, "mv .assay .assay-mixed" in refused.said) == (2, True), walk.describe(refused.said)
    assert walk.site.requests() == []
