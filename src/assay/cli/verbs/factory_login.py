"""Logs in to BMCs that were found, with the credentials with which the declared deliveries are shipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import typer

from assay.act.boot.machine_matching import match_machines
from assay.act.boot.machine_sightings import read_sightings
from assay.adapters.bmc.credentials import UserPassword, parse_user_password
from assay.adapters.bmc.errors import BmcLoginRefused
from assay.adapters.bmc.machine_identity import read_machine
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.service_root_scan import FoundBmc
from assay.cli.workspace import Workspace
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.model.errors import AssayError
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.seen_machine import SeenMachine


def describe_found(found: FoundBmc) -> SeenMachine:
    """Return what a BMC says without a login."""
    said = {"address": found.address, "fingerprint": found.fingerprint}
    return SeenMachine.parse({**said, "vendor": found.vendor, "model": found.product})


def read_machines(workspace: Workspace, found: Sequence[FoundBmc], port: int) -> Iterator[SeenMachine]:
    """Yield what each BMC says after a login, or what it said before, where it lets nobody in. Says so on stderr.

    A machine that has a login of its own gets that one, where an earlier sight says that it is at this address.
    Raises AssayError if no delivery has factory credentials, or if they cannot be read.
    """
    logins, own = list_factory_logins(workspace), _map_own_logins(workspace)
    quirks = BmcQuirkSet(workspace.fleet.quirks.values())
    for bmc in found:
        try:
            login = own.get(bmc.address)
            yield _read_with_any(bmc, port, [_read_login(workspace, login)] if login else logins, quirks)
        except AssayError as error:
            typer.echo(f"{bmc.address}: {error.what}", err=True)
            yield describe_found(bmc)


def list_factory_logins(workspace: Workspace) -> list[UserPassword]:
    """Return the factory credentials of the deliveries, each once."""
    deliveries = workspace.fleet.deliveries.values()
    references = {
        describe_reference(delivery.factory_credentials): delivery.factory_credentials
        for delivery in deliveries
        if delivery.factory_credentials
    }
    if not references and not any(machine.bmc_credentials for one in deliveries for machine in one.machines):
        fix = "give a delivery in specs/ its `factory_credentials`, or scan without --login"
        raise AssayError("no delivery says with which credentials its BMCs are shipped", where="--login", fix=fix)
    return [_read_login(workspace, reference) for reference in references.values()]


def _map_own_logins(workspace: Workspace) -> dict[str, CredentialReference]:
    """Return address → the login of the machine that was seen there, for machines with a login of their own."""
    own = {
        (delivery.name, machine.name): machine.bmc_credentials
        for delivery in workspace.fleet.deliveries.values()
        for machine in delivery.machines
        if machine.bmc_credentials
    }
    seen = [sighting.machine for sighting in read_sightings(workspace.ledger, workspace.clock.now())]
    matches = match_machines(seen, workspace.fleet)
    return {one.seen.address: own[one.delivery, one.node] for one in matches if (one.delivery, one.node) in own}


def _read_login(workspace: Workspace, reference: CredentialReference) -> UserPassword:
    return parse_user_password(read_secret(reference, workspace.root), describe_reference(reference))


def _read_with_any(bmc: FoundBmc, port: int, logins: Sequence[UserPassword], quirks: BmcQuirkSet) -> SeenMachine:
    refused: BmcLoginRefused | None = None
    for credentials in logins:
        try:
            return read_machine(bmc, port, credentials, quirks)
        except BmcLoginRefused as error:
            refused = error
    raise refused or AssayError("no login is declared for it")
