"""What is known of a node since the last pass: faults that no decision has looked at, and how its agent is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from assay.cli.desk import Desk
from assay.cli.roll import ago
from assay.model.spans import counted

if TYPE_CHECKING:
    from assay.lifecycle.story import Story

Plain = dict[str, Any]
MIB = 1024 * 1024


def lately(desk: Desk, story: Story) -> Plain:
    """Return `told` (open faults that no decision names yet) and `agent` (None where none was ever heard)."""
    return {"told": list(_told(desk, story)), "agent": _agent(desk, story.node)}


def lines(desk: Desk, said: Plain) -> Iterator[str]:
    """Yield what `lately` says, one line each."""
    for fault in said["told"]:
        times = f", {fault['count']} times" if fault["count"] > 1 else ""
        yield f"{fault['severity']} fault {fault['class']} on {fault['subject']}{times}: the next pass decides on it"
    if agent := said["agent"]:
        yield "; ".join(_of_agent(agent, ago(agent["heard"], desk.clock.now())))


def _told(desk: Desk, story: Story) -> Iterator[Plain]:
    decisions = desk.ledger.entries(story.node, kinds=["decision"])
    named = {cause["id"] for decision in decisions for cause in decision.body.get("because", ())}
    for fault in story.faults:
        if fault.open and fault.id not in named and fault.last_seen > story.repaired_at:
            names = ("severity", "subject", "count", "first_seen", "last_seen", "detail")
            yield {"class": fault.fault_class, **{name: getattr(fault, name) for name in names}}


def _agent(desk: Desk, node: str) -> Plain | None:
    from assay.observe.heard import Heard

    path = desk.home / "heard.sqlite"
    if not path.exists():
        return None
    heard = Heard(path)
    position, word = heard.positions().get(node), heard.words().get((node, "agent"))
    if position is None or word is None or word.at is None:
        return None
    return {"heard": word.at.isoformat(), "received": position.received, **position.state}


def _of_agent(agent: Plain, when: str) -> Iterator[str]:
    yield f"its agent was heard {when} and has brought {counted(agent['received'], 'item')}"
    yield f"it has cost {agent['cpu_s']:.1f} CPU s and holds {agent['rss_bytes'] / MIB:.0f} MiB"
    lost = {**agent["dropped"], "overwritten": agent["missed"]}
    if gone := [f"{number} {name}" for name, number in lost.items() if number]:
        yield f"lost before they could be delivered: {', '.join(gone)}"
    if agent["log"]:
        yield f"no kernel log: {agent['log']}"
    if agent["nvml"] and agent["nvml"] != "not asked for":
        yield f"no events of GPUs: {agent['nvml']}"
