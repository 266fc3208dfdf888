"""`assay reconcile` tells customers in each round: after the tickets, and by one controller only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.loop import reconcile_pass
from assay.act.loop.context import ControllerContext
from assay.act.loop.reconcile_pass import DELIVERY_LEASE
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.cli.verbs import reconcile
from assay.cli.workspace import Workspace
from assay.ledger.leases import make_holder_name
from assay.ledger.store import Ledger
from assay.tell.messages.customer_teller import CustomerTeller
from assay.tell.messages.delivery import deliver_tickets
from tests.tell.messages.hall import Hall


def test_the_controller_delivers_tickets_and_then_tells_customers(hall: Hall, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Workspace, "controller_context", lambda *_, **__: hall.context)
    context = reconcile._make_context(Workspace(Path()))
    tickets, customers = context.tellers
    assert tickets is deliver_tickets
    assert isinstance(customers, CustomerTeller)


def test_tellers_are_called_after_the_tickets(hall: Hall, monkeypatch: pytest.MonkeyPatch):
    done: list[str] = []
    monkeypatch.setattr(reconcile_pass, "update_tickets", lambda *_: done.append("tickets"))
    context = replace(hall.context, tellers=(lambda _: done.append("people"),))
    reconcile_pass.tell_people(context, FleetSnapshotCache(context))
    assert done == ["tickets", "people"]


def test_a_controller_without_the_lease_tells_nobody(hall: Hall, monkeypatch: pytest.MonkeyPatch):
    done: list[ControllerContext] = []
    context = replace(hall.context, tellers=(done.append,))
    monkeypatch.setattr(Ledger, "is_shared", True)
    hall.ledger.claim_lease(DELIVERY_LEASE, make_holder_name(), 60.0)
    reconcile_pass.tell_people(context, FleetSnapshotCache(context))
    assert done == []
