"""`python -m tests.integration.growing_fleet FOLDER NODES…`: all that can be asked of made fleets, its work counted.

Prints JSON: number of nodes → work → line → count. Two nodes of eight have an open fault, and one of them is out of
service; each fabric was scanned, and some machines were seen that are no nodes yet. Schedules do not run: they ask
other programs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support import counted_work

FABRIC, FAULTS, OUTCOMES, MACHINES, RUNS = 32, 1, 3, 4, 2
NODE, SWITCH = "n000001", "f001-leaf-su01-r1"
ALL_NODES = "n[000001-{count:06}]"
REASON = ("--reason", "the growth of its cost is measured", "--who", "test")
COMMANDS: dict[str, tuple[str, ...]] = {
    "check": (),
    "plan": ("--base", "HEAD"),
    "show": (NODE,),
    "specs codeowners": (),
    "discover": (),
    "images": (),
    "boot dhcp": ("--for", "dnsmasq"),
    "faults": ("faults.log",),
    "suites list": (),
    "results --list": ("--list",),
    "results": ("{run}",),
    "results --compare": ("{run}", "--compare"),
    "gate": ("{run}",),
    "report": (),
    "prune": (),
    "status": (),
    "status --all": ("--all",),
    "status --format json": ("--format", "json"),
    "sync": (),
    "collectives plan": ("--design", "fabric-001"),
    "explain": (NODE,),
    "history": (NODE,),
    "history --outcomes": ("--outcomes",),
    "schedules": (),
    "metrics": (),
    "tickets": (),
    "tickets deliver": (),
    "tickets repairs": (),
    "ledger verify": (),
    "ledger backup": ("backup.sqlite",),
    "operations": (),
    "rollout": (),
    "rollout list": (),
    "breaker": (),
    "fabric compare": ("--design", "fabric-001", "--from", "fabric.txt"),
    "fabric evaluate": ("fabric-001",),
    "fabric impact": (SWITCH, "--design", "fabric-001"),
    "fabric learn": ("--from", "fabric.txt", "--name", "learned"),
    "doctor": (),
    "hold": (ALL_NODES, *REASON),
    "release": (ALL_NODES, *REASON),
}
"""What is counted of the command line, with arguments."""
NOT_COUNTED = {
    "asks machines or other programs, waits, or judges again what they answered": (
        *("agent", "serve", "observe", "validate", "rejudge", "reconcile", "schedules run", "slurm orders"),
        *("suites verify", "fabric scan", "fabric import", "collectives run", "discover delivery"),
    ),
    "reads what another program recorded of one console": ("console",),
    "is about one machine, question, ticket or rollout": (
        *(
            "discover take-over",
            "discover update",
            "specs learn",
            "tickets done",
            "tickets preview",
            "move",
            "certify",
            "approve",
            "decline",
        ),
        *("operations show", "operations cancel", "operations defer"),
        *("rollout show", "rollout pause", "rollout resume", "rollout abort", "breaker clear", "collectives explain"),
    ),
    "reads months of measurements: `python -m bench trend-cost` counts it": ("trends",),
    "is refused by a policy that only watches": ("operations start", "zap"),
    "is about no fleet": ("init", "schema", "context", "replay"),
    "is of the lab": tuple(f"lab {word}" for word in ("up", "down", "status", "inject", "advance", "tour")),
    "rewrites the ledger or the specs as a whole, on a day of its own": (
        *("upgrade", "ledger restore", "ledger archive", "ledger seal", "ledger upgrade"),
    ),
}
"""What is not counted, and why."""
PAGES = {
    "/": "/",
    "/fabric": "/fabric",
    "/fabric/{name}": f"/fabric/{SWITCH}",
    "/nodes/{name}": f"/nodes/{NODE}",
    "/racks/{name}": "/racks/r00001",
    "/pools/{name}": "/pools/pool-01",
    "/rollouts": "/rollouts",
    "/tickets": "/tickets",
    "/machines": "/machines",
    "/idle": "/idle",
    "/trends": "/trends",
    "/customer": "/customer",
    "/search": "/search?text=nosuch",
}
ENDPOINTS = {
    "/nodes": "/nodes?limit=1000",
    "/nodes/{name}": f"/nodes/{NODE}",
    "/nodes/{name}/explain": f"/nodes/{NODE}/explain",
    **{
        path: path
        for path in ("/pools", "/trust", "/rollouts", "/tickets", "/machines", "/facts", "/changes", "/operations")
    },
}


class MadeFleet:
    """A fleet of `count` nodes below `folder`, with its past."""

    def __init__(self, folder: Path, count: int) -> None:
        from bench import big_fleet, quiet

        big_fleet.FABRIC = FABRIC
        self.root, self.count = folder / f"fleet-{count}", count
        big_fleet.make(self.root, count)
        policy = self.root / "specs/lifecycle/default.yaml"
        policy.write_text(policy.read_text().replace("\n  fleet: act\n", "\n  fleet: watch\n"))  # nobody is reached
        quiet.NODES, quiet.FAULTS, quiet.OUTCOMES = count, FAULTS, OUTCOMES
        quiet.THEN = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
        self.context = quiet.make_context(self.root)
        unscheduled = replace(self.context, fleet=replace(self.context.fleet, schedules={}))
        self.loop = quiet.make_loop(unscheduled)
        quiet.write_past(self.context)
        self._break_nodes()
        self._see_machines()
        self._write_files()

    def _break_nodes(self) -> None:
        from assay.decide.faults.detection import FaultObservation
        from assay.decide.state.decision_and_fault_entries import make_fault_entry
        from assay.model.entries.node_entries import TransitionEntry

        at = self.context.now
        for number, (name, node) in enumerate(self.context.fleet.nodes.items()):
            if number % 8 < 2:
                kind, part = ("gpu.xid.79", "gpu3") if number % 16 < 2 else ("ib.link.down", "mlx5_3")
                fault = FaultObservation(
                    f"open-{name}", name, kind, f"{node.subject}/{part}", "catastrophic", "hardware", "ticket", 1,
                    at, at, "as it is", {"kernel": "b:9"}, (at,),
                )  # fmt: skip
                self.context.ledger.append(make_fault_entry(fault, at))
            if number % 8 == 0:
                move = TransitionEntry("production", "triage", f"decision-{name}")
                self.context.ledger.append(move.make_entry(f"move-{name}", at, name))

    def _see_machines(self) -> None:
        from assay.act.boot.matching import record_sightings
        from assay.model.specs.machines import SeenMachine

        seen = [SeenMachine(f"10.30.0.{at % 250}", serial=f"S{at:05}") for at in range(self.count // MACHINES)]
        record_sightings(self.context.ledger, seen, "scan", self.context.clock.now())

    def _write_files(self) -> None:
        from assay.fabric.design.compiler import compile_topology
        from bench import made_runs
        from bench.big_fabric import dump
        from bench.changes import move_firmware

        made_runs.NEWEST = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
        *_, newest = made_runs.make(self.context.fleet, self.root / "reports", OUTCOMES, RUNS)
        self.run = newest.parent.name
        fleet = self.context.fleet
        (self.root / "fabric.txt").write_text("".join(dump(compile_topology(fleet.designs["fabric-001"], fleet))))
        lines = (f"NVRM: Xid (PCI:0000:1b:00): {at % 90}, pid={at}\n" for at in range(self.count * 8))
        (self.root / "faults.log").write_text("".join(lines))
        move_firmware(self.root)


def run_command(words: str, arguments: tuple[str, ...]) -> None:
    """Run a command in this process. Raises RuntimeError where it could not do its work."""
    from typer.testing import CliRunner

    from assay.cli.app import app

    result = CliRunner().invoke(app, [*words.partition(" --")[0].split(), *arguments])
    if result.exit_code not in (0, 1) or (result.exception and not isinstance(result.exception, SystemExit)):
        raise RuntimeError(f"assay {words}: {result.exit_code}, {result.exception!r}\n{result.output[-1500:]}")


def list_works(made: MadeFleet) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is counted, by name, in the order in which it runs."""
    from assay.act.tickets.ticket_updates import update_tickets
    from assay.tell.metrics.fleet_metrics import FleetMetrics, format_metrics
    from assay.tell.pages.page_routes import PAGES as ROUTES

    metrics = FleetMetrics(lambda: made.context)
    yield "the first /metrics", lambda: format_metrics(metrics)
    yield "/metrics", lambda: format_metrics(metrics)
    yield from list_requests(made)
    assert PAGES.keys() <= ROUTES.keys()
    for name, arguments in COMMANDS.items():
        given = tuple(each.format(count=made.count, run=made.run) for each in arguments)
        yield f"assay {name}", lambda name=name, given=given: run_command(name, given)
    yield "the first pass", lambda: (made.loop.begin(), made.loop.run_everything_due())
    yield "a pass", made.loop.run_everything_due
    yield "the tickets", lambda: update_tickets(made.context)


def list_requests(made: MadeFleet) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the pages, first and again, and the endpoints of the API."""
    from assay.act.loop.fleet_reload import CurrentContext
    from assay.tell.server.agent_tokens import READER_TOKEN, AgentTokens
    from assay.tell.server.app_state import AppState
    from assay.tell.server.batch_writer import BatchWriter
    from assay.tell.server.requests import RefusalLog
    from assay.tell.server.server import build_app
    from tests.tell.asgi_calls import READER, Caller

    home, current = made.context.home, CurrentContext(made.context)
    (home / READER_TOKEN).write_text(f"{READER}\n")
    refusals = RefusalLog(home / "refusals.jsonl")
    state = AppState(current, AgentTokens(made.root), BatchWriter(current, lambda _: None), refusals)
    caller = Caller.reading(build_app(state, None))  # type: ignore[arg-type]  # asked for while it listens

    def ask(path: str) -> None:
        reply = caller.get(path)
        assert reply.status == 200, (path, reply.status, reply.body[:500])

    for name, path in PAGES.items():
        yield f"page {name}", lambda path=path: ask(path)
        yield f"page {name} again", lambda path=path: ask(path)
    for name, path in ENDPOINTS.items():
        yield f"/api/v1{name}", lambda path=path: ask(f"/api/v1{path}")


def count_everything(made: MadeFleet) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the counts of each work."""
    os.chdir(made.root)
    for name, work in list_works(made):
        counted_work.take_counts()
        work()
        yield name, counted_work.take_counts()


if __name__ == "__main__":
    counted_work.install()
    sizes = map(int, sys.argv[2:])
    json.dump({size: dict(count_everything(MadeFleet(Path(sys.argv[1]), size))) for size in sizes}, sys.stdout)
