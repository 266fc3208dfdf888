"""`assay serve`: receives the deliveries of the agents on the nodes and turns them into faults at once.

`assay metrics` prints what `GET /metrics` of a server gives.
"""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import FleetDir, option
from assay.cli.service_log import LogFormat, open_service_log
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError


def serve(
    host: Annotated[str, option("--host IP", "The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, option("--port PORT", "The port. 0 takes a free one and prints it.", min=0, max=65535)] = 8443,
    cert: Annotated[Path | None, option("--cert FILE", "The server's certificate with its chain (PEM).")] = None,
    key: Annotated[Path | None, option("--key FILE", "Its private key (PEM), if it is in another file.")] = None,
    boot: Annotated[
        bool, option("--boot", "Only answer machines that boot: scripts, images, first data. No secrets.")
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


TEXTFILE_SUFFIX = ".prom"


def metrics(
    to: Annotated[
        Path | None, option("--to FILE", "Replace this file, which node_exporter's textfile collector reads.")
    ] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Print the metrics of docs/metrics.md in Prometheus' text format, counted from the ledger.

    `assay serve` and `assay reconcile --metrics` give the same to a Prometheus that asks.

    Exit codes: 0 printed; 2 the ledger or the fleet cannot be read.
    """
    from assay.tell.metrics.fleet_metrics import FleetMetrics, format_metrics

    if to and to.suffix != TEXTFILE_SUFFIX:
        fix = f"give it a name that ends with {TEXTFILE_SUFFIX}"
        raise AssayError("node_exporter reads no such file", where=str(to), fix=fix)
    context = Workspace(fleet.resolve()).controller_context(reads_only=True)
    text = format_metrics(FleetMetrics(lambda: context)).decode()
    if to is None:
        typer.echo(text, nl=False)
    else:
        # A rename replaces the file at once: a reader never sees half of it.
        draft = to.with_name(f".{to.name}.{os.getpid()}")
        draft.write_text(text)
        draft.replace(to)
