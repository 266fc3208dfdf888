"""`assay serve`: listen to the nodes' agents, and turn what they deliver into faults at once.

`assay agent`: on a node, the same as `python -m assay.agent`.

`assay slurm orders`: what Slurm's hooks on a node look at, and what they drain it for.
"""

from __future__ import annotations

import ipaddress
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.workspace import FleetDir, Workspace
from assay.model.errors import AssayError

agent_app = typer.Typer(add_completion=False, help="On a node: deliver its kernel lines, GPU events and readings.")


@agent_app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def agent(context: typer.Context) -> None:
    """Follow this node's kernel log and GPU events, and deliver them."""
    from assay.agent.__main__ import main

    main(context.args)


serve_app = typer.Typer(add_completion=False, help="Listen to the nodes' agents.")

Host = Annotated[str, typer.Option("--host", help="The address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one and says which.")]
Cert = Annotated[Path | None, typer.Option("--cert", help="The certificate to show, with its chain (PEM).")]
Key = Annotated[Path | None, typer.Option("--key", help="Its private key (PEM), where it is not in the same file.")]


@serve_app.command()
def serve(
    host: Host = "127.0.0.1", port: Port = 8443, cert: Cert = None, key: Key = None, fleet: FleetDir = Path()
) -> None:
    """Take in what agents deliver, until SIGTERM or Ctrl-C. Plain HTTP is for this machine only."""
    from assay.controller.context import ControllerContext as Work
    from assay.observe.evidence_store import EvidenceStore
    from assay.web.server import ListenConfig
    from assay.web.server import serve as listen

    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise AssayError(f"{host!r} is no address", fix="give an IP address of this machine, such as 0.0.0.0") from None
    desk = Workspace(fleet.resolve())
    work = Work(desk.fleet, desk.ledger, EvidenceStore(desk.evidence_dir), desk.clock, desk.data_dir, desk.reports_dir)
    listen(work, ListenConfig(host, port, cert, key), _print_server_message)


def _print_server_message(text: str) -> None:
    from assay.model.secret_redaction import redact

    print(f"assay serve: {redact(text)}", file=sys.stderr, flush=True)  # noqa: T201 — for people


slurm_app = typer.Typer(add_completion=False, no_args_is_help=True, help="Write what Slurm's hooks on a node look at.")
SlurmFleetOption = Annotated[Path, typer.Option("--fleet", help="The fleet repository.", envvar="ASSAY_FLEET")]


@slurm_app.callback()
def _slurm() -> None:
    """Write what Slurm's hooks on a node look at."""


@slurm_app.command()
def orders(node: Annotated[str, typer.Argument(metavar="NODE")], fleet: SlurmFleetOption = Path()) -> None:
    """Print a node's orders as JSON, for /etc/assay-agent/slurm-hook.json there (docs/slurm.md).

    They change with the node's spec, the fault catalogue and the policy. Exit code 0: printed; 2: they cannot be made.
    """
    from assay.fleet.fleet_loader import load_fleet
    from assay.lifecycle.slurm_hook_policy import build_hook_config

    loaded = load_fleet(fleet)
    if node not in loaded.nodes:
        raise AssayError(f"there is no node {node}", where=str(fleet / "inventory"))
    if len(loaded.policies) != 1:
        raise AssayError(f"the fleet has {len(loaded.policies)} policies", where=str(fleet / "specs"))
    typer.echo(
        json.dumps(build_hook_config(loaded, next(iter(loaded.policies.values())), loaded.nodes[node]), indent=1)
    )
