"""`assay approve` and `assay decline`: a person's yes or no where automation only suggests, or an order is too old."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.act.orders.trust_orders import answer_wait, find_wait, list_fleet_waits
from assay.cli.operator_orders import Reason, Who, Within, identify_operator, parse_within, record_orders
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace

approve_app = typer.Typer(add_completion=False)
decline_app = typer.Typer(add_completion=False)

DecisionId = Annotated[
    str,
    typer.Argument(metavar="DECISION", help="The id of what waits, or how it begins.", show_default=False),
]


@approve_app.command()
def approve(
    decision: DecisionId,
    reason: Reason,
    within: Within = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Say yes to a decision that waits for a person, or let an order go on that has outlived its time.

    `assay status` lists what waits, `assay explain` says what would be done. The next round does it.

    Exit codes: 0 recorded; 2 nothing was recorded.
    """
    _answer(fleet, decision, (who, reason), form, is_yes=True, within=within)


@decline_app.command()
def decline(
    decision: DecisionId, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Say no to a decision that waits for a person. The same decision is not made again while its reasons stay.

    Exit codes: 0 recorded; 2 nothing was recorded.
    """
    _answer(fleet, decision, (who, reason), form, is_yes=False)


def _answer(fleet: Path, ident: str, words: tuple[str, str], form: str, *, is_yes: bool, within: str = "") -> None:
    workspace = Workspace(fleet.resolve())
    operator, hours = identify_operator(workspace, *words), parse_within(within)
    wait = find_wait(list_fleet_waits(workspace.fleet, workspace.read_node_states()), ident)
    record_orders(
        workspace,
        [wait.node],
        lambda state: answer_wait(wait, state, operator, is_yes=is_yes, within_hours=hours),
        form,
    )
