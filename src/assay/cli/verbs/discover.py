"""`assay discover`: finds machines that are no nodes yet, tells which they are, and drafts their inventory.

It may log in to BMCs, with the credentials with which the declared deliveries are shipped. The inventory is proposed
as a branch of one commit for each delivery.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from assay.act.boot.inventory_update import draft_guids, draft_node_lines, find_new_guids, find_update, format_diff
from assay.act.boot.matching import MachineMatch, match_machines, read_sightings, record_sightings
from assay.act.boot.proposal import draft_inventory, propose_file, read_committed_file
from assay.adapters.bmc.errors import BmcLoginRefused
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.scan import FoundBmc, read_machine
from assay.adapters.bmc.session import UserPassword, parse_user_password
from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, OutputFormat, argument, nodes_argument, option
from assay.cli.workspace import Workspace, select_nodes
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.machines import SeenMachine
from assay.model.text.lists import fold_names, format_count
from assay.model.text.safe_text import redact
from assay.tell.views.machine_list import VERDICT_WORDS, MachineList

LOGINS_AT_ONCE = 32
TRIES_OF_USER = 2
"""So many passwords of one user is a BMC asked: from three on, some lock the account."""
discover_app = typer.Typer(add_completion=False)


@discover_app.callback(invoke_without_command=True)
def discover(
    context: typer.Context,
    scan: Annotated[
        list[str] | None, option("--scan RANGE", "Ask the BMCs at these addresses first: 10.0.0.0/24. Repeatable.")
    ] = None,
    login: Annotated[bool, option("--login", "With --scan, log in with the deliveries' factory credentials.")] = False,
    port: Annotated[int, option("--port", "The port of the BMCs.", min=1, max=65535)] = 443,
    propose: Annotated[
        bool, option("--propose", "Draft the inventory of the expected machines, each delivery on a branch.")
    ] = False,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show the machines that were seen, and which nodes they are: by serial number and MAC address.

    A scan asks each address for Redfish's service root, which needs no login, and records who answers. With `--login`
    it also reads serial number, model and place. DHCP servers report machines to `assay serve`.

    Exit codes: 0 no machine contradicts the inventory; 1 one does, or stands in another place, or is unknown; 2 the
    ledger, the fleet or a proposal cannot be made or read.
    """
    context.obj = fleet
    if context.invoked_subcommand is not None:
        return
    from assay.adapters.bmc.scan import list_addresses
    from assay.tell.views.machine_list import build_machine_list

    workspace = Workspace(fleet.resolve())
    workspace.announce()
    if scan:
        known = {(node.bmc_address, node.settings.bmc_port) for node in workspace.fleet.nodes.values()}
        if not {(address, port) for address in list_addresses(scan)} <= known:  # in the lab: the virtual BMCs
            workspace.home.require_fleet("--scan asks real addresses")
        _scan(workspace, scan, port, with_login=login)
    seen = read_sightings(workspace.ledger, workspace.clock.now())
    listed = build_machine_list(workspace.fleet, seen, workspace.ledger)
    print_answer(listed, form, format_machines(listed))
    if propose:
        for line in propose_deliveries(workspace, listed.machines):
            typer.echo(line, err=form == "json")
    raise typer.Exit(1 if any(machine.verdict not in ("node", "expected") for machine in listed.machines) else 0)


@discover_app.command("take-over")
def take_over(
    context: typer.Context,
    names: Annotated[list[str] | None, nodes_argument("The nodes. Default: all that were not taken over yet.")] = None,
) -> None:
    """Change the factory login of new nodes' BMCs to the one of `bmc_credentials`, once.

    The BMC must have the certificate that the inventory declares, and the node's serial number. Then its account is
    made or changed, and the factory account is disabled. Logins prove it: one works, the factory one is refused.

    Exit codes: 0 all have the login of the inventory; 1 one does not; 2 the ledger or the fleet cannot be read.
    """
    from assay.act.ingest.bmc_takeovers import list_open_takeovers
    from assay.act.ingest.bmc_takeovers import take_over as take_over_bmc

    workspace = Workspace(context.obj.resolve())
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
def update(
    context: typer.Context, name: Annotated[str, argument("NODE", "The node, or a switch of a fabric.")]
) -> None:
    """Draft the lines of the repository that a new machine, board, BMC or switch changes, or a new place in a rack.

    It asks the node and its BMC now: serial number, certificate, MAC addresses, GUIDs and place. The BMC gets the
    factory login of a delivery, at the certificate that it shows, and no other login. A delivery that lists the serial
    number tells the rest. Of a switch it needs a scan of its fabric. The draft is one commit on a branch of its own:
    compare the certificate and the serial number with the machine's label before you merge it.

    Exit codes: 0 drafted, or all is as declared; 1 a line must be corrected by hand; 2 it cannot be read.
    """
    workspace = Workspace(context.obj.resolve())
    workspace.announce()
    known = workspace.fleet.nodes.get(name)
    path, before, after, questions = _draft_node(workspace, known) if known else _draft_switch(workspace, name)
    if before != after:
        branch = f"update/{name}"
        proposal = propose_file(workspace.root, branch, path, after, f"inventory: {name} is as it is now")
        typer.echo(f"{branch} changes {path} ({proposal.commit[:10]}):\n{format_diff(path, before, after)}")
        typer.echo(f"  git push -u origin {branch}   # and open its pull request, or here: git merge {branch}")
        for mistake in proposal.mistakes:
            typer.echo(f"  before the merge, settle {mistake}")
    else:
        typer.echo(f"{name} is as the repository declares it")
    for question in questions:
        typer.echo(f"{name}: {question}", err=True)
    raise typer.Exit(1 if questions else 0)


def _draft_node(workspace: Workspace, node: Node) -> tuple[str, str, str, tuple[str, ...]]:
    """Return the file that declares a node, its text before and after, and what a person must find out."""
    from assay.adapters.bmc.scan import ask_service_root
    from assay.observe.evidence_collector import collect_evidence

    bmc = ask_service_root(node.bmc_address, node.settings.bmc_port) if node.bmc_address else None
    seen = describe_found(bmc) if bmc else SeenMachine()
    if bmc and any(delivery.factory_credentials for delivery in workspace.fleet.deliveries.values()):
        try:
            (seen,) = read_machines(workspace, [bmc], node.settings.bmc_port)
        except AssayError as error:  # what the node itself says may be enough
            typer.echo(f"no login to the BMC: {error.what}", err=True)
    evidence = collect_evidence(workspace.fleet, [node.name], clock=workspace.clock)[node.name]
    draft = find_update(workspace.fleet, node, seen, evidence)
    return *draft_node_lines(workspace.root, node.name, draft.changes), draft.questions


def _draft_switch(workspace: Workspace, name: str) -> tuple[str, str, str, tuple[str, ...]]:
    from assay.act.loop.snapshot import FabricComparisonCache

    scans = FabricComparisonCache().get_all(workspace.controller_context())
    guids = next((new for scan in scans.values() if (new := find_new_guids(scan.comparison, name))), {})
    if not guids:
        fix = f"scan its fabric first; the nodes are {', '.join(fold_names(workspace.fleet.nodes))}"
        raise AssayError(f"{name} is no node, and no scan saw a new switch in its place", fix=fix)
    return *draft_guids(workspace.root, guids), ()


@discover_app.command()
def delivery(
    name: Annotated[str, argument("NAME", "The name of the delivery.")],
    file: Annotated[Path, argument("FILE", "The vendor's list of machines: CSV, .xlsx or .json.")],
) -> None:
    """Draft the spec of a delivery from a vendor's list, on stdout. A person must review each `# review:`.

    What of the list is not used stands on stderr: columns, and rows that are wrong or name a machine twice.

    Exit codes: 0 drafted; 1 drafted without some rows; 2 the list cannot be read.
    """
    from assay.act.boot.delivery_list import draft_delivery, read_delivery_file

    listed = read_delivery_file(file)
    typer.echo(draft_delivery(name, listed.machines), nl=False)
    for line in (*listed.unused_columns, *listed.refused_rows):
        typer.echo(f"assay discover: {line}", err=True)
    if listed.refused_rows:
        raise typer.Exit(1)


def _scan(workspace: Workspace, ranges: list[str], port: int, *, with_login: bool) -> None:
    from assay.adapters.bmc.scan import list_addresses, scan_service_roots
    from assay.cli.output import show_progress

    addresses = list_addresses(ranges)
    with show_progress("asked") as show:
        asked = 0

        def count() -> None:
            nonlocal asked
            asked += 1
            show({"addresses": (asked, len(addresses))})

        bmcs = list(scan_service_roots(addresses, port, count))
    typer.echo(f"{len(bmcs):,} of {len(addresses):,} addresses answer as a BMC", err=True)
    machines: list[SeenMachine] = []
    with show_progress("read") as show:
        for machine in read_machines(workspace, bmcs, port) if with_login else map(describe_found, bmcs):
            machines.append(machine)
            show({"BMCs": (len(machines), len(bmcs))})
    record_sightings(workspace.ledger, machines, "scan", workspace.clock.now())


def describe_found(bmc: FoundBmc) -> SeenMachine:
    """Return what a BMC says without a login."""
    identity = {"address": bmc.address, "fingerprint": bmc.fingerprint}
    return SeenMachine.parse({**identity, "vendor": bmc.vendor, "model": bmc.product})


def read_machines(workspace: Workspace, bmcs: Sequence[FoundBmc], port: int) -> Iterator[SeenMachine]:
    """Yield what each BMC says after a login, or what it said before, where it lets nobody in. Says so on stderr.

    A machine that has a login of its own gets that one, where an earlier sight says that it is at this address.
    Raises AssayError if no delivery has factory credentials, or if they cannot be read.
    """
    logins, own = list_factory_logins(workspace), _map_own_logins(workspace)
    quirks = BmcQuirkSet(workspace.fleet.quirks.values())

    def read(bmc: FoundBmc) -> SeenMachine:
        try:
            login = own.get(bmc.address)
            return _read_with_any(bmc, port, [_read_login(workspace, login)] if login else logins, quirks)
        except AssayError as error:
            typer.echo(f"{bmc.address}: {error.what}", err=True)
            return describe_found(bmc)

    with ThreadPoolExecutor(LOGINS_AT_ONCE) as pool:
        yield from pool.map(read, bmcs)


def list_factory_logins(workspace: Workspace) -> list[UserPassword]:
    """Return the factory credentials of the deliveries, each once."""
    deliveries = workspace.fleet.deliveries.values()
    references = {
        describe_reference(delivery.factory_credentials): delivery.factory_credentials
        for delivery in deliveries
        if delivery.factory_credentials
    }
    if not references and not any(machine.bmc_credentials for delivery in deliveries for machine in delivery.machines):
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
    return {
        match.seen.address: own[match.delivery, match.node] for match in matches if (match.delivery, match.node) in own
    }


def _read_login(workspace: Workspace, reference: CredentialReference) -> UserPassword:
    return parse_user_password(read_secret(reference, workspace.root), describe_reference(reference))


def _read_with_any(bmc: FoundBmc, port: int, logins: Sequence[UserPassword], quirks: BmcQuirkSet) -> SeenMachine:
    refused: BmcLoginRefused | None = None
    tried = Counter[str]()
    for credentials in logins:
        tried[credentials.user] += 1
        if tried[credentials.user] > TRIES_OF_USER:
            continue
        try:
            return read_machine(bmc, port, credentials, quirks)
        except BmcLoginRefused as error:
            refused = error
    raise refused or AssayError("no login is declared for it")


def propose_deliveries(workspace: Workspace, matches: Sequence[MachineMatch]) -> Iterator[str]:
    """Commit the drafts, and yield what people are told. Raises AssayError where a draft cannot be committed."""
    by_delivery = defaultdict(list)
    for match in matches:
        if match.verdict == "expected":
            by_delivery[match.delivery].append(match)
    if not by_delivery:
        yield "there is nothing to propose: no expected machine was seen that is no node yet"
    for delivery, new_nodes in sorted(by_delivery.items()):
        path, branch = f"inventory/{delivery}.yml", f"discover/{delivery}"
        text = draft_inventory(workspace.fleet, delivery, new_nodes, read_committed_file(workspace.root, path))
        names = ", ".join(fold_names(match.node for match in new_nodes))
        proposal = propose_file(workspace.root, branch, path, text, f"inventory: add {names} of delivery {delivery}")
        yield f"{branch} has {format_count(len(new_nodes), 'new node')} in {path} ({proposal.commit[:10]}): {names}"
        yield f"  git push -u origin {branch}   # and open its pull request; `assay plan` shows what merging it does"
        yield from (f"  before the merge, settle {mistake}" for mistake in proposal.mistakes)


def format_machines(listed: MachineList) -> Iterator[str]:
    """Yield the lines: by verdict, the urgent ones first. Nodes that are as declared are only counted."""
    if not listed.machines:
        yield "no machine was seen yet: assay discover --scan 10.0.0.0/24"
    for verdict, words in VERDICT_WORDS.items():
        some = [machine for machine in listed.machines if machine.verdict == verdict]
        if some:
            yield f"{format_count(len(some), 'machine')} {words}"
        for machine in some if verdict != "node" else ():
            yield f"  {machine.node or '?'}  {machine.describe()}"
            yield from (f"      {problem}" for problem in machine.problems)
    if listed.factory_logins:
        nodes = format_count(len(listed.factory_logins), "node")
        yield f"{nodes} may still have the factory login: end it with `assay discover take-over`"
        yield f"  {', '.join(fold_names(listed.factory_logins))}"
    if listed.not_seen:
        yield f"{format_count(len(listed.not_seen), 'machine')} expected and not seen yet"
        for unseen in listed.not_seen:
            yield f"  {unseen.node}  serial {unseen.serial}, {unseen.rack} U{unseen.u}, delivery {unseen.delivery}"
