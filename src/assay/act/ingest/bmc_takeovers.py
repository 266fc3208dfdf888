"""Takes over BMCs of a delivery: their factory login is changed once. The ledger says when, and for which accounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.act.loop.context import ControllerContext
from assay.act.orders.orders import refuse_watched
from assay.act.remedies.bmc_takeover import BmcTakeover
from assay.adapters.bmc.session import parse_user_password, read_bmc_credentials
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.ledger.store import Ledger
from assay.model.entries.boot import BmcTakeoverEntry
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.node import Node
from assay.model.specs.credential_reference import CredentialReference
from assay.model.text.safe_text import redact

TakeoverStep = Literal["started", "done", "failed"]


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A BMC that has the login of the inventory now. `was_changed`: by this call; else it had it before."""

    account: str
    factory_account: str
    was_changed: bool


def list_open_takeovers(fleet: Fleet, ledger: Ledger) -> list[str]:
    """Return the nodes of deliveries with factory credentials whose BMCs were not taken over yet."""
    takeovers = map(BmcTakeoverEntry.read, ledger.entries(kinds=[BmcTakeoverEntry.kind]))
    done = {entry.serial for entry in takeovers if entry.step == "done"}
    logins = map_factory_logins(fleet)
    return [node.name for node in fleet.nodes.values() if node.serial in logins and node.serial not in done]


def map_factory_logins(fleet: Fleet) -> dict[str, CredentialReference]:
    """Return serial number → where the login is with which its BMC was shipped."""
    return {
        machine.serial_number: login
        for delivery in fleet.deliveries.values()
        for machine in delivery.machines
        if (login := machine.bmc_credentials or delivery.factory_credentials)
    }


def take_over(context: ControllerContext, node: Node) -> TakenOver:
    """Change the factory login of a node's BMC, and prove it; do nothing where that was done.

    Raises AssayError, whose message says how far it came.
    """
    refuse_watched(context.fleet, node.name)
    work = _make_takeover(context.fleet, node)
    accounts = (work.wanted.user, work.factory.user)
    if not work.needs_change():
        if node.name in list_open_takeovers(context.fleet, context.ledger):
            _record(context, work, "done")
        return TakenOver(*accounts, was_changed=False)
    _record(context, work, "started")
    try:
        work.change()
        work.prove()
    except AssayError as error:
        _record(context, work, "failed", redact(error.what))
        fix = error.fix or "run it again when the BMC answers: it goes on from what the BMC accepts then"
        raise AssayError(error.what, where=error.where, fix=fix) from None
    _record(context, work, "done")
    return TakenOver(*accounts, was_changed=True)


def _make_takeover(fleet: Fleet, node: Node) -> BmcTakeover:
    """Return the work. Raises AssayError where something is not declared: then nothing is sent."""
    reference = map_factory_logins(fleet).get(node.serial)
    if reference is None:
        fix = "give its delivery `factory_credentials`"
        raise AssayError("no delivery says with which login its BMC was shipped", where=node.name, fix=fix)
    if not (node.settings.bmc_fingerprint or node.settings.bmc_ca):
        fix = "declare bmc_fingerprint; `assay discover --propose` writes it"
        raise AssayError("no certificate is declared for its BMC, so no login is sent", where=node.name, fix=fix)
    factory = parse_user_password(read_secret(reference, fleet.root), describe_reference(reference))
    wanted = read_bmc_credentials(node, fleet.root)
    if wanted == factory:
        fix = "put another password at the place that bmc_credentials names"
        raise AssayError("bmc_credentials are the factory login", where=node.name, fix=fix)
    return BmcTakeover(fleet, node, factory, wanted)


def _record(context: ControllerContext, work: BmcTakeover, step: TakeoverStep, reason: str = "") -> None:
    entry = BmcTakeoverEntry(step, work.node.serial, work.wanted.user, work.factory.user, reason)
    before = context.ledger.entries(work.node.name, [BmcTakeoverEntry.kind])
    ident = derive_id(entry.kind, work.node.name, before[-1].id if before else "", step)
    context.ledger.append(entry.make_entry(ident, context.now, work.node.name))
