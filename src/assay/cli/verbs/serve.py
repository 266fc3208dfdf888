"""`assay serve`: receives the deliveries of the agents on the nodes and turns them into faults at once."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import FleetDir
from assay.cli.service_log import LogFormat, open_service_log
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

serve_app = typer.Typer(add_completion=False)


@serve_app.command()
def serve(
    host: Annotated[str, typer.Option(metavar="IP", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="The port. 0 takes a free one and prints it.")
    ] = 8443,
    cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The server's certificate with its chain (PEM).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private key (PEM), if it is in another file.")
    ] = None,
    boot: Annotated[
        bool, typer.Option("--boot", help="Only answer machines that boot: scripts, images, first data. No secrets.")
    ] = False,
    fleet: FleetDir = Path(),
    log_format: LogFormat = "text",
) -> None:
    """Receive deliveries from agents until SIGTERM or Ctrl-C.

    The server records faults. It decides and acts on nothing: that is the work of `assay reconcile`, which also adopts
    new commits and starts their rollouts.

    Without a certificate, the server speaks plain HTTP, on a loopback address only; with `--boot`, on any address.
    SIGHUP makes it read certificate, tokens and fleet again. It records refusals in `.assay/refusals.jsonl`. The
    policy's `intake` sets its limits.
    """
    from assay.act.loop.fleet_reload import CurrentContext
    from assay.tell.server.server import serve as listen
    from assay.tell.server.server_certificate import ListenConfig

    try:
        ipaddress.ip_address(host)
    except ValueError:
        fix = "give an IP address of this machine, such as 0.0.0.0"
        raise AssayError(f"{host!r} is not an IP address", fix=fix) from None
    log = open_service_log("serve", log_format)
    workspace = Workspace(fleet.resolve())
    reloader = workspace.fleet_reloader(log.info)
    current = CurrentContext(workspace.controller_context(), reloader)
    listen(current, ListenConfig(host, port, cert, key, boot), log.info)
