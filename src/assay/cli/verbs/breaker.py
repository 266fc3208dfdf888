"""`assay breaker`: the circuit breakers that hold nodes back; `clear` lets assay answer what one holds."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.act.orders.orders import OperatorIdentity
from assay.cli.context_line import print_answer
from assay.cli.operator_orders import Reason, Who, identify_operator
from assay.cli.options import FleetDir, OutputFormat, argument, complete_pools, hand_fleet_on, option
from assay.cli.workspace import Workspace, require_known
from assay.model.entries.node_entries import BreakerClearedEntry
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.text.lists import format_count, format_list
from assay.model.timestamps import format_ago, format_time, hours, parse_time

if TYPE_CHECKING:
    from assay.decide.moves.held_answers import OpenBreaker
    from assay.decide.state.node_state import NodeState


@fact
class BreakersAnswer:
    """The circuit breakers that hold nodes back."""

    breakers: list[OpenBreaker]
    """The breakers, by pool."""


@fact
class ClearedBreakerAnswer:
    """A circuit breaker that was cleared."""

    breaker: OpenBreaker
    """What it held back until then."""
    reason: str
    """Why it was cleared, in that person's words."""
    who: str
    """Who cleared it."""
    at: str
    """When: ISO 8601 with the offset of UTC."""
    new: bool
    """Whether this was recorded now; false if it was recorded before."""


breaker_app = typer.Typer(add_completion=False)


@breaker_app.callback(invoke_without_command=True)
def breaker(context: typer.Context, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show the circuit breakers that hold nodes back: why, since when, which nodes, and how to clear each.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read.
    """
    hand_fleet_on(context, fleet)
    if context.invoked_subcommand:
        return
    from assay.decide.moves.held_answers import list_open_breakers

    workspace = Workspace(fleet.resolve())
    breakers, now = list_open_breakers(workspace.read_node_states()), workspace.clock.now()
    lines = [format_breaker(held, now) for held in breakers] or ["no breaker holds anything back"]
    print_answer(BreakersAnswer(breakers), form, lines)


@breaker_app.command()
def clear(
    pool: Annotated[str, argument("POOL", "The pool.", complete=complete_pools)],
    reason: Reason,
    who: Who = "",
    fault_class: Annotated[str, option("--class CLASS", "Only the series of this class.")] = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Clear a pool's breaker: assay answers what it holds back, as fast as the limits allow.

    The pool's faults up to now no longer count for a wave. New faults do.

    Exit codes: 0 cleared; 2 nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator = identify_operator(workspace, who, reason)
    states = workspace.read_node_states()
    held = _find_held(workspace, states, pool, fault_class)
    entries = _make_entries(workspace, states, pool, operator, fault_class)
    appended = workspace.ledger.append(*entries)
    answer = ClearedBreakerAnswer(held, operator.reason, operator.who, operator.at, any(appended))
    count = format_count(len(held.nodes), "node")
    of_class = f" is cleared for {fault_class}" if fault_class else " is cleared"
    line = f"the breaker of pool {pool}{of_class}: the next rounds answer {count}, as far as the limits allow"
    print_answer(answer, form, [line])


def _find_held(workspace: Workspace, states: list[NodeState], pool: str, fault_class: str) -> OpenBreaker:
    """Return what the breaker of a pool holds, of one class if one is named.

    Raises AssayError for an unknown pool, and if it holds nothing.
    """
    from assay.decide.moves.held_answers import list_open_breakers

    for held in list_open_breakers(states):
        if held.pool == pool and (not fault_class or fault_class in held.series.split("/")):
            return held
    require_known(
        [pool], {*(state.pool for state in states), *(node.pool for node in workspace.fleet.nodes.values())}, "pool"
    )
    raise AssayError(f"the breaker of pool {pool} holds nothing back", fix="`assay breaker` lists what is held back")


def _make_entries(
    workspace: Workspace, states: list[NodeState], pool: str, operator: OperatorIdentity, fault_class: str
) -> list[LedgerEntry]:
    """Return an entry for each node whose faults count for a wave. The same order, given twice, has the same ids."""
    from assay.decide.moves.held_answers import find_nodes_to_clear

    since = format_time(parse_time(operator.at) - hours(workspace.fleet.policy.breaker.longest_hours))
    content = BreakerClearedEntry(pool, operator.who, operator.reason, fault_class)
    entries, one_class = [], [fault_class] if fault_class else []
    for state in find_nodes_to_clear(states, pool, since):
        faults = (f"{fault.id} {fault.no_wave}" for fault in state.faults)
        ident = derive_id(content.kind, state.node, state.stay_id, state.deadline_held_at, *faults, *one_class)
        entries.append(content.make_entry(ident, operator.at, state.node))
    return entries


def format_breaker(breaker: OpenBreaker, now: datetime) -> str:
    """Return a breaker as lines for people: what it holds, why, and how to clear it."""
    cordoned = f", {len(breaker.cordoned)} cordoned" if breaker.cordoned else ""
    return (
        f"the breaker of pool {breaker.pool} holds back {format_count(len(breaker.nodes), 'node')}{cordoned}, "
        f"since {format_ago(breaker.since, now)}: {format_list(list(breaker.nodes))}\n"
        f"  {breaker.reason}\n"
        f"  → find the common cause; then, to have them answered within the limits: {breaker.clear}"
    )
