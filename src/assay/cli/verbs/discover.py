"""`assay discover`: finds machines that are no nodes yet, tells which they are, and drafts their inventory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from assay.cli.options import FleetDir, OutputFormat, nodes_argument
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.specs.seen_machine import SeenMachine
from assay.model.text.secret_redaction import redact

discover_app = typer.Typer(add_completion=False)


@discover_app.callback(invoke_without_command=True)
def discover(
    context: typer.Context,
    scan: Annotated[
        list[str] | None,
        typer.Option("--scan", metavar="RANGE", help="Ask the BMCs at these addresses first: 10.0.0.0/24. Repeatable."),
    ] = None,
    login: Annotated[
        bool, typer.Option("--login", help="With --scan, log in with the deliveries' factory credentials.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port of the BMCs.")] = 443,
    propose: Annotated[
        bool, typer.Option("--propose", help="Draft the inventory of the expected machines, each delivery on a branch.")
    ] = False,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show the machines that were seen, and which nodes they are: by serial number and MAC address.

    A scan asks each address for Redfish's service root, which needs no login, and records who answers. With `--login`
    it also reads serial number, model and place. DHCP servers report machines by `assay discover lease`.

    Exit codes: 0 no machine contradicts the inventory; 1 one does, or stands in another place, or is unknown; 2 the
    ledger, the fleet or a proposal cannot be made or read.
    """
    context.obj = fleet
    if context.invoked_subcommand is not None:
        return
    from assay.act.boot.machine_sightings import read_sightings
    from assay.cli.verbs.machine_table import format_machines, machines_as_json
    from assay.tell.views.machine_list import build_machine_list

    workspace = Workspace(fleet.resolve())
    workspace.announce()
    if scan:
        workspace.home.require_fleet("--scan asks real addresses")
        _scan(workspace, scan, port, with_login=login)
    seen = read_sightings(workspace.ledger, workspace.clock.now())
    listed = build_machine_list(workspace.fleet, seen, workspace.ledger)
    typer.echo(machines_as_json(listed) if form == "json" else "\n".join(format_machines(listed)))
    if propose:
        from assay.cli.verbs.inventory_proposal import propose_deliveries

        for line in propose_deliveries(workspace, listed.machines):
            typer.echo(line, err=form == "json")
    raise typer.Exit(1 if any(one.verdict not in ("node", "expected") for one in listed.machines) else 0)


@discover_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lease(context: typer.Context) -> None:
    """Record the machine of a DHCP lease. A DHCP server calls it: dnsmasq (`dhcp-script`), Kea (`run_script`).

    Exit codes: 0 recorded, or nothing to record; 2 the words are not those of a DHCP server, or the ledger fails.
    """
    from assay.act.boot.lease_hook import read_leases

    try:
        seen = read_leases(context.args, os.environ)
    except ValueError as error:
        fix = "let dnsmasq or Kea call it; docs/day-0.md shows the configuration"
        raise AssayError(str(error), where="assay discover lease", fix=fix) from None
    workspace = Workspace(_pick_fleet(context).resolve())
    _record(workspace, seen, "lease")


@discover_app.command("take-over")
def take_over(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        nodes_argument("The nodes. Default: all that were not taken over yet."),
    ] = None,
) -> None:
    """Change the factory login of new nodes' BMCs to the one of `bmc_credentials`, once.

    The BMC must have the certificate that the inventory declares, and the node's serial number. Then its account is
    made or changed, and the factory account is disabled. Logins prove it: one works, the factory one is refused.

    Exit codes: 0 all have the login of the inventory; 1 one does not; 2 the ledger or the fleet cannot be read.
    """
    from assay.act.ingest.bmc_takeovers import list_open_takeovers
    from assay.act.ingest.bmc_takeovers import take_over as take_over_bmc
    from assay.cli.name_check import select_nodes

    workspace = Workspace(_pick_fleet(context).resolve())
    chosen = select_nodes(workspace.fleet, names, []) if names else None
    controller = workspace.controller_context()
    failed = False
    for name in list_open_takeovers(workspace.fleet, controller.ledger) if chosen is None else chosen:
        try:
            done = take_over_bmc(controller, workspace.fleet.nodes[name])
        except AssayError as error:
            typer.echo(redact(str(error)), err=True)
            failed = True
            continue
        how = "" if done.was_changed else " already"
        typer.echo(
            f"{name}: its BMC has the login {done.account}{how}, and refuses the factory's {done.factory_account}"
        )
    raise typer.Exit(1 if failed else 0)


@discover_app.command()
def delivery(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the delivery.", show_default=False)],
    csv: Annotated[Path, typer.Argument(metavar="CSV", help="The vendor's list of machines.", show_default=False)],
) -> None:
    """Draft the spec of a delivery from a vendor's list, on stdout. A person must review each `# review:`.

    Exit codes: 0 drafted; 2 the list, or a row of it, cannot be read.
    """
    from assay.act.boot.delivery_list import draft_delivery, read_delivery_list

    try:
        text = csv.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        _refuse_file(csv, error)
    typer.echo(draft_delivery(name, read_delivery_list(text, str(csv))), nl=False)


def _refuse_file(path: Path, error: OSError | UnicodeDecodeError) -> NoReturn:
    reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
    raise AssayError(f"the list cannot be read: {reason}", where=str(path), fix="name a CSV file in UTF-8") from None


def _pick_fleet(context: typer.Context) -> Path:
    fleet: Path = context.obj
    return fleet


def _scan(workspace: Workspace, ranges: list[str], port: int, *, with_login: bool) -> None:
    from assay.adapters.bmc.service_root_scan import list_addresses, scan_service_roots
    from assay.cli.progress import show_progress
    from assay.cli.verbs.factory_login import describe_found, read_machines

    addresses = list_addresses(ranges)
    with show_progress("asked") as show:
        asked = 0

        def count() -> None:
            nonlocal asked
            asked += 1
            show({"addresses": (asked, len(addresses))})

        found = list(scan_service_roots(addresses, port, count))
    typer.echo(f"{len(found):,} of {len(addresses):,} addresses answer as a BMC", err=True)
    machines = list(read_machines(workspace, found, port)) if with_login else list(map(describe_found, found))
    _record(workspace, machines, "scan")


def _record(workspace: Workspace, seen: list[SeenMachine], source: str) -> None:
    from assay.act.boot.machine_sightings import record_sightings

    record_sightings(workspace.ledger, seen, source, workspace.clock.now())
