"""Takes over BMCs of a delivery: their factory login is changed once to the one that the inventory declares.

Only what the BMC accepts decides, so a run that was cut off is repeated. Each connection compares the certificate with
the declared one before it sends anything. The ledger says when, and for which accounts.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Literal

from assay.act.actions.action import wait_until
from assay.act.loop.context import ControllerContext
from assay.act.orders.orders import refuse_watched
from assay.adapters.bmc.accounts import disable_account, give_account
from assay.adapters.bmc.client import BmcClient, accepts_login, open_bmc, renew_expired_password
from assay.adapters.bmc.errors import BmcPasswordChangeRequired
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.session import UserPassword, parse_user_password, read_bmc_credentials
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.ledger.store import Ledger
from assay.model.entries.boot import BmcTakeoverEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.node import Node
from assay.model.specs.credential_reference import CredentialReference
from assay.model.text.safe_text import redact

WORK_S = 60.0
"""Of one login, and what is done with it."""
PROOF_S = 30.0
"""How long a BMC may go on as before after a change."""


@frozen
class BmcTakeover:
    """The work on one BMC. `factory`: the login with which it was shipped. `wanted`: the login of `bmc_credentials`."""

    fleet: Fleet
    node: Node
    factory: UserPassword
    wanted: UserPassword

    def needs_change(self) -> bool:
        """Whether the factory account is still open; False if only the wanted login works. Raises AssayError otherwise.

        The factory login is tried first: the wanted one goes only to a BMC that refuses that.
        """
        try:
            is_open = self._accepts(self.factory)
        except BmcPasswordChangeRequired:
            is_open = True
        return is_open or self._is_half_done()

    def change(self) -> None:
        """Give the wanted account its password, and disable the factory account where it is another one.

        Raises AssayError, also if another machine than the node's is behind this BMC.
        """
        with self._open(self._find_way_in()) as bmc:
            self._refuse_other_machine(bmc)
            if not self._accepts(self.wanted):
                give_account(bmc, self.wanted.user, self.wanted.password)
        if not self._is_same_user:
            with self._open(self.wanted) as bmc:
                disable_account(bmc, self.factory.user)

    def prove(self) -> None:
        """Log in anew with the wanted login, and see the factory account refused. Raises AssayError otherwise."""
        goal = f"the BMC accepts its new login {self.wanted.user}"
        wait_until(lambda: self._accepts(self.wanted) or None, PROOF_S, goal, self.node.name)
        goal = f"the BMC refuses its factory login {self.factory.user}"
        for login in (self.factory,) if self._is_same_user else (self.factory, self._interim):
            wait_until(partial(self._refuses, login), PROOF_S, goal, self.node.name)

    @property
    def _is_same_user(self) -> bool:
        return self.wanted.user == self.factory.user

    @property
    def _interim(self) -> UserPassword:
        """The factory user with the wanted password, for a while: some BMCs want a new one at the first login."""
        return UserPassword(self.factory.user, self.wanted.password)

    def _is_half_done(self) -> bool:
        """Whether the factory account is open with the wanted password, though another account should be."""
        has_wanted = self._accepts(self.wanted)
        if not self._is_same_user and self._accepts(self._interim):
            return True
        if not has_wanted:
            message = (
                "the BMC refuses both its factory login and that of bmc_credentials: it was changed, or it is locked"
            )
            fix = "reset the BMC's accounts at the machine, or correct factory_credentials or bmc_credentials"
            raise AssayError(message, where=self.node.name, fix=fix)
        return False

    def _find_way_in(self) -> UserPassword:
        """Return the login of the factory account, with a new password if the BMC lets nobody in without one."""
        with contextlib.suppress(BmcPasswordChangeRequired):
            return self.factory if self._accepts(self.factory) else self._interim
        renew_expired_password(self.fleet, self.node, self.factory, self.wanted.password)
        return self._interim

    def _refuse_other_machine(self, bmc: BmcClient) -> None:
        serial = (bmc.system().get("SerialNumber") or "").strip()
        if serial != self.node.serial:
            message = f"behind this BMC is serial {serial or '(none)'}, and {self.node.serial} is declared"
            raise AssayError(message, where=bmc.where, fix="look at the machine, and correct the inventory")

    def _accepts(self, login: UserPassword) -> bool:
        return accepts_login(self.fleet, self.node, login.user, login.password, WORK_S)

    def _refuses(self, login: UserPassword) -> bool | None:
        return None if self._accepts(login) else True

    def _open(self, login: UserPassword) -> contextlib.AbstractContextManager[BmcClient]:
        quirks = BmcQuirkSet(self.fleet.quirks.values())
        return open_bmc(self.node, root=self.fleet.root, deadline_s=WORK_S, quirks=quirks, credentials=login)


TakeoverStep = Literal["started", "done", "failed"]


@frozen
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
