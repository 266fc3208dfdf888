"""`assay boot`: what the services beside assay need, so that machines boot from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from assay.cli.options import FleetDir
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

boot_app = typer.Typer(add_completion=False, no_args_is_help=True)


@boot_app.callback()
def boot() -> None:
    """Print what the services beside assay need, so that machines boot from it."""


@boot_app.command()
def dhcp(
    server: Annotated[Literal["dnsmasq", "kea"], typer.Option("--for", help="The DHCP server.")],
    provisioning: Annotated[
        str, typer.Option("--provisioning", metavar="NAME", help="The Provisioning, where the fleet has several.")
    ] = "",
    fleet: FleetDir = Path(),
) -> None:
    """Print the configuration by which a DHCP server leads machines to `assay serve --boot`.

    PXE, UEFI HTTP boot and iPXE each get their own answer. Nodes with a MAC address in the inventory are listed.
    """
    from assay.act.boot.dhcp_config import list_dhcp_hosts, render_dnsmasq, render_kea

    declared = Workspace(fleet.resolve()).fleet
    names = [provisioning] if provisioning else list(declared.provisionings)
    if len(names) != 1 or names[0] not in declared.provisionings:
        known = ", ".join(declared.provisionings) or "none"
        raise AssayError("which Provisioning?", fix=f"--provisioning NAME; the fleet has: {known}")
    chosen = declared.provisionings[names[0]]
    render = render_dnsmasq if server == "dnsmasq" else render_kea
    typer.echo(render(chosen, list_dhcp_hosts(declared, chosen)), nl=False)
