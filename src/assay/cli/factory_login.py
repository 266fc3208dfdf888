"""Logs in to BMCs that were found, with the credentials with which the declared deliveries are shipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import typer

from assay.cli.workspace import Workspace
from assay.fleet.secret_lookup import describe_reference, read_secret
from assay.model.errors import AssayError
from assay.model.provisioning.seen_machine import SeenMachine
from assay.redfish.credentials import UserPassword, parse_user_password
from assay.redfish.errors import BmcLoginRefused
from assay.redfish.machine_identity import read_machine
from assay.redfish.quirks import BmcQuirkSet
from assay.redfish.service_root_scan import FoundBmc


def describe_found(found: FoundBmc) -> SeenMachine:
    """Return what a BMC says without a login."""
    said = {"address": found.address, "fingerprint": found.fingerprint}
    return SeenMachine.parse({**said, "vendor": found.vendor, "model": found.product})


def read_machines(workspace: Workspace, found: Sequence[FoundBmc], port: int) -> Iterator[SeenMachine]:
    """Yield what each BMC says after a login, or what it said before, where it lets nobody in. Says so on stderr.

    Raises AssayError if no delivery has factory credentials, or if they cannot be read.
    """
    logins = list_factory_logins(workspace)
    quirks = BmcQuirkSet(workspace.fleet.quirks.values())
    for bmc in found:
        try:
            yield _read_with_any(bmc, port, logins, quirks)
        except AssayError as error:
            typer.echo(f"{bmc.address}: {error.what}", err=True)
            yield describe_found(bmc)


def list_factory_logins(workspace: Workspace) -> list[UserPassword]:
    """Return the factory credentials of the deliveries, each once."""
    references = {
        describe_reference(delivery.factory_credentials): delivery.factory_credentials
        for delivery in workspace.fleet.deliveries.values()
        if delivery.factory_credentials
    }
    if not references:
        fix = "give a delivery in specs/ its `factory_credentials`, or scan without --login"
        raise AssayError("no delivery says with which credentials its BMCs are shipped", where="--login", fix=fix)
    return [parse_user_password(read_secret(one, workspace.root), name) for name, one in references.items()]


def _read_with_any(bmc: FoundBmc, port: int, logins: Sequence[UserPassword], quirks: BmcQuirkSet) -> SeenMachine:
    refused: BmcLoginRefused | None = None
    for credentials in logins:
        try:
            return read_machine(bmc, port, credentials, quirks)
        except BmcLoginRefused as error:
            refused = error
    assert refused is not None
    raise refused
