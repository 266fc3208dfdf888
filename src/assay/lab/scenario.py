"""A scenario file: the faults, people and jobs of a rehearsal, and the outcomes that it expects.

`check_expectations` compares the expected outcomes with the ledger, `assay status` and the virtual hardware.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from assay.lab.world import LabWorld
from assay.model.entries.effects import EffectIntentEntry, EffectVerifiedEntry
from assay.model.entries.faults import FaultEntry, ObservationFailedEntry
from assay.model.entries.node_entries import read_entered_state
from assay.model.entries.registry import decode_entry
from assay.model.entries.tickets import TicketClosedEntry, TicketReopenedEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.spec_document import SpecDocument, StrictModel


class InjectStep(StrictModel):
    """A fault of `assay lab inject` on one node, with its arguments under `with`."""

    fault: str
    node: str
    arguments: dict[str, int | float | str] = Field(default={}, alias="with")


class JobStep(StrictModel):
    """A customer's job on a node, which ends after `hours` lab hours."""

    node: str
    name: str
    hours: float


class ReconcileStep(StrictModel):
    """`assay reconcile --once`. `kill_in_flash` names a node: SIGKILL once its BMC writes an image."""

    nodes: list[str] = Field(default=[])
    settle: bool = False
    kill_in_flash: str = ""


class TicketExpectation(StrictModel):
    """`count` tickets whose text contains all words of `mentions`; `open`: whether they must still be open."""

    mentions: list[str] = Field(min_length=1)
    open: bool = True
    count: int = 1


class ExpectStep(StrictModel):
    """The expected ledger, tickets and hardware at this point. Only the given keys are checked."""

    state: dict[str, str] = Field(default={})
    path: dict[str, list[str]] = Field(default={}, description="node → its last states, in order")
    waiting: dict[str, str] = Field(default={}, description="node → the job that its pending transition waits for")
    faults: dict[str, str] = Field(default={}, description="node → a fault class in its history")
    unanswered: dict[str, list[str]] = Field(default={}, description="node → channels that did not answer")
    effects: dict[str, dict[str, int]] = Field(default={}, description="node → action → number of verified effects")
    flashes: dict[str, dict[str, int]] = Field(default={}, description="node → component → images its BMC accepted")
    tickets: list[TicketExpectation] = Field(default=[])


class ScenarioStep(StrictModel):
    """One step of a chapter: exactly one of these keys. A `reconcile` waits until its nodes' burn-ins did the hours."""

    inject: InjectStep | None = None
    job: JobStep | None = None
    advance_hours: float | None = None
    reconcile: ReconcileStep | None = None
    assay: list[str] | None = Field(default=None, description="a command, whose answer is shown")
    expect: ExpectStep | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> ScenarioStep:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"a step has exactly one key; this one has {sorted(self.model_fields_set) or 'none'}")
        return self


class ScenarioChapter(StrictModel):
    """A titled sequence of steps."""

    title: str
    steps: list[ScenarioStep]


class LabScenario(SpecDocument):
    """The faults planted before the lab starts, and the new machines; then the chapters in order."""

    start: str
    rate: float = Field(gt=0, description="lab seconds in a real second")
    plant: list[InjectStep] = Field(default=[])
    new_machines: list[str] = Field(
        default=[],
        description="nodes that nobody has started yet; a tour about them alone, on a copy with a boot server",
    )
    chapters: list[ScenarioChapter] = Field(default=[])

    @property
    def starts_at(self) -> datetime:
        """The lab time at the start."""
        return datetime.fromisoformat(self.start)


def load_scenario(path: Path) -> LabScenario:
    """Read a scenario file. Raises AssayError with the file and the place of the first mistake."""
    try:
        plain: Any = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
        return LabScenario.model_validate(plain)
    except OSError as error:
        raise AssayError(error.strerror or "cannot be read", where=str(path)) from error
    except yaml.YAMLError as error:
        raise AssayError(str(error), where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise AssayError(
            f"{place}: {first['msg']}", where=str(path), fix="scenarios/the-loop.yaml is an example"
        ) from error


@frozen
class ExpectationResult:
    """One expectation: its text, whether it was met, and what was observed instead."""

    expected: str
    met: bool
    observed: str = ""


@dataclass(frozen=True)
class ScenarioObservation:
    """What expectations are checked against: the ledger, `assay status` by node, and the virtual hardware."""

    entries: Sequence[LedgerEntry]
    status: dict[str, dict[str, Any]]
    world: LabWorld

    def entries_of_node(self, node: str, *kinds: str) -> list[LedgerEntry]:
        """Return a node's ledger entries of these kinds, oldest first."""
        return [entry for entry in self.entries if entry.node == node and entry.kind in kinds]


def check_expectations(expect: ExpectStep, seen: ScenarioObservation) -> Iterator[ExpectationResult]:
    """Yield one result for each expectation in `expect`."""
    for node, state in expect.state.items():
        now = str(seen.status.get(node, {}).get("state", "unknown"))
        yield ExpectationResult(f"{node} is in {state}", now == state, f"it is in {now}")
    yield from (_path(node, states, seen) for node, states in expect.path.items())
    yield from (_waiting(node, job, seen) for node, job in expect.waiting.items())
    yield from (_fault(node, name, seen) for node, name in expect.faults.items())
    yield from (_unanswered(node, channels, seen) for node, channels in expect.unanswered.items())
    for node, effects in expect.effects.items():
        yield from (_effect(node, action, times, seen) for action, times in effects.items())
    for node, flashes in expect.flashes.items():
        yield _flashes(node, flashes, seen)
    yield from (_ticket(ticket, seen) for ticket in expect.tickets)


def _path(node: str, states: list[str], seen: ScenarioObservation) -> ExpectationResult:
    moves = seen.entries_of_node(node, "node.enrolled", "transition")
    went = [read_entered_state(entry) for entry in moves]
    return ExpectationResult(
        f"{node} went {' → '.join(states)}", went[-len(states) :] == states, f"it went {' → '.join(went)}"
    )


def _waiting(node: str, job: str, seen: ScenarioObservation) -> ExpectationResult:
    pending = seen.status.get(node, {}).get("pending") or {}
    names = " ".join(str(name) for name in pending.get("blockers", []))
    return ExpectationResult(
        f"status says that {node} waits for {job}", job in names, f"it waits for {names or 'nothing'}"
    )


def _fault(node: str, name: str, seen: ScenarioObservation) -> ExpectationResult:
    classes = sorted({FaultEntry.read(entry).fault_class for entry in seen.entries_of_node(node, "fault")})
    return ExpectationResult(
        f"{node} has {name} in its history", name in classes, f"it has {', '.join(classes) or 'no fault'}"
    )


def _unanswered(node: str, channels: list[str], seen: ScenarioObservation) -> ExpectationResult:
    failed = [ObservationFailedEntry.read(entry) for entry in seen.entries_of_node(node, "observe.failed")]
    silent = {entry.channel: entry.reason for entry in failed}
    reasons = "; ".join(f"{channel}: {reason}" for channel, reason in silent.items())
    return ExpectationResult(f"{node}: no answer from {', '.join(channels)}", set(channels) <= set(silent), reasons)


def _effect(node: str, action: str, times: int, seen: ScenarioObservation) -> ExpectationResult:
    begun = [EffectIntentEntry.read(entry) for entry in seen.entries_of_node(node, "effect.intent")]
    ended = [EffectVerifiedEntry.read(entry).effect for entry in seen.entries_of_node(node, "effect.verified")]
    intents = {intent.effect for intent in begun if intent.action == action}
    verified = [effect for effect in ended if effect in intents]
    once = len(intents) == times and sorted(verified) == sorted(intents)
    text = f"{node}: {action} journalled and verified {'once' if times == 1 else f'{times} times'}"
    return ExpectationResult(text, once, f"{len(intents)} intents, {len(verified)} verified")


def _flashes(node: str, flashes: dict[str, int], seen: ScenarioObservation) -> ExpectationResult:
    counted = Counter(str(flash["component"]) for flash in seen.world.load(node)["flashes"])
    wanted = ", ".join(f"{component} {times}×" for component, times in sorted(flashes.items()))
    taken = ", ".join(f"{component} {times}×" for component, times in sorted(counted.items()))
    return ExpectationResult(f"{node}'s BMC took {wanted}", dict(counted) == flashes, f"it took {taken or 'none'}")


def _ticket(expected: TicketExpectation, seen: ScenarioObservation) -> ExpectationResult:
    opened = [entry.body for entry in seen.entries if entry.kind == "ticket.opened"]
    closed = set[str]()
    for entry in seen.entries:
        match decode_entry(entry):
            case TicketClosedEntry(ticket=ident):
                closed.add(ident)
            case TicketReopenedEntry(ticket=ticket):
                closed.discard(ticket.id)
    about = [body for body in opened if all(word in str(body) for word in expected.mentions)]
    still = [body for body in about if body["ticket"] not in closed]
    met = len(about) == expected.count and len(still) == (expected.count if expected.open else 0)
    state = "open" if expected.open else "closed"
    text = f"{expected.count} ticket, {state}, naming {', '.join(expected.mentions)}"
    return ExpectationResult(text, met, f"{len(about)} such tickets, {len(still)} open; {len(opened)} in all")
