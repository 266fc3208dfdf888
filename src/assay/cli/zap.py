"""`assay zap NODE…`: a person asks for the whole firmware bundle to be brought onto a node again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from assay.cli.asked import Now, asked, policy_of, ways_from
from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.word import NodeNames, Reason, Speaker, Who, Word, speak, speaker
from assay.lifecycle.by_hand import step_towards
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.lifecycle.story import Story

app = typer.Typer(add_completion=False, help="Bring firmware and configuration onto a node again.")


@app.command()
def zap(
    nodes: NodeNames, reason: Reason, now: Now = False, who: Who = "", fleet: FleetDir = Path(), form: Format = "text"
) -> None:
    """Ask for firmware and configuration to be brought to the node's bundle and read back.

    The next pass decides on it. Where the policy draws no way there, you are told where the node may go.
    """
    desk = Desk(fleet.resolve())
    said = speaker(desk, who, reason)
    speak(desk, nodes, lambda story: _zapped(desk, said, story, now=now), form)


def _zapped(desk: Desk, said: Speaker, story: Story, *, now: bool) -> Word:
    policy = policy_of(desk, story)
    states = [name for name, state in policy.states.items() if "zap" in state.entry]
    if not states:
        raise Trouble(
            f"no state of the policy {policy.name} zaps a node on arrival",
            where=desk.fleet.lines.get((f"LifecyclePolicy/{policy.name}", "states"), ""),
            fix="say `entry: [zap]` of the state in which firmware and configuration are brought to the bundle",
        )
    near = [name for name in states if name == story.state or step_towards(policy, story.state, name)]
    if not near:
        told = f"the policy draws no way for {story.node} from {story.state} to {' or '.join(states)}"
        raise Trouble(told, fix=ways_from(policy, story.state))
    return asked(desk, said, story, near[0], "zap.asked", now=now)
