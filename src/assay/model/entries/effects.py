"""Entries about effects: the intent before anything is done, failed attempts, the end, and what was read back.

A wipe says of each drive when it is ordered, proven or missed; a burn-in when it began, and of each window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from assay.model.entries.entry_content import EntryContent
from assay.model.facts import fact, shown


@fact
class EffectIntentEntry(EntryContent):
    """Written before an effect starts. `effect` is its id, `decision` what asked for it.

    `before` holds what the action read first, `params` its parameters, `by` who carries it out: host, pid, until.
    `named_by` is the entry that gave the machine its name.
    """

    kind = "effect.intent"
    effect: str
    action: str
    decision: str = shown(missing="")
    reason: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    by: Mapping[str, Any] = field(default_factory=dict)
    named_by: str = shown(omit_stored=True, default="")


@fact
class EffectTriedEntry(EntryContent):
    """Attempt number `attempt` came to nothing. The next one is made from `again_at` (ISO 8601 UTC) on."""

    kind = "effect.tried"
    effect: str
    action: str = shown(missing="")
    attempt: int
    reason: str
    again_at: str


@fact
class EffectProgressEntry(EntryContent):
    """How far an effect got. Its kind says how far; `facts` holds what was read back."""

    effect: str
    action: str = shown(missing="")
    reason: str = shown(missing="")
    facts: Mapping[str, Any] = field(default_factory=dict)


class EffectDoneEntry(EffectProgressEntry):
    """The action ran, well or (with a reason) not. It proves nothing."""

    __slots__ = ()
    kind = "effect.done"


class EffectVerifiedEntry(EffectProgressEntry):
    """A reading of the world shows the effect."""

    __slots__ = ()
    kind = "effect.verified"


class EffectFailedEntry(EffectProgressEntry):
    """A reading of the world shows that the effect is not there."""

    __slots__ = ()
    kind = "effect.failed"


class EffectUnknownEntry(EffectProgressEntry):
    """The world could not be read. It ends nothing."""

    __slots__ = ()
    kind = "effect.unknown"


@fact
class WipeOrderedEntry(EntryContent):
    """A drive's blocks hold `marker`, as they were read back, and it is told to erase itself by `method`.

    `effect`: the id of the effect that asked for it. `drive`: the kernel's name, such as `nvme0`, at that time.
    `samples`: how many blocks hold the marker.
    """

    kind = "wipe.ordered"
    effect: str
    serial: str
    model: str
    drive: str
    method: str
    marker: str
    samples: int


@fact
class WipeProvedEntry(EntryContent):
    """A drive was erased by `method`. `proof`: what was read of it afterwards, in words."""

    kind = "wipe.proved"
    effect: str
    serial: str
    model: str
    drive: str
    method: str
    proof: str


@fact
class WipeMissedEntry(EntryContent):
    """A drive was not erased by `method`, for `reason`. Another method may follow."""

    kind = "wipe.missed"
    effect: str
    serial: str
    model: str
    drive: str
    method: str
    reason: str


BurnInEvent = Literal["silent", "interrupted", "stopped"]
BurnInOutcome = Literal["done", "failed", "incomplete", "stopped", "none"]
"""`done`: all of it ran. `failed`: a verdict ended it. `incomplete`: parts gave no results. `stopped`: the node left
the state. `none`: no burn-in is for the node."""


@fact
class BurnInStartedEntry(EntryContent):
    """The burn-in `burn_in` (the id of its effect) of the spec `spec` runs on the node, for `hours`."""

    kind = "burnin.started"
    burn_in: str
    spec: str
    hours: float


@fact
class BurnInWindowEntry(EntryContent):
    """A window is over: its content (a BurnInWindow), and how far the node's journal `log` has been read.

    `line` is the number of the last line that counts. `serials`: subject → serial number, where they are new. `boot`:
    the boot in which the node wrote it.
    """

    kind = "burnin.window"
    burn_in: str
    log: str
    line: int
    window: Mapping[str, Any]
    boot: str = ""
    serials: Mapping[str, str] = shown(omit_stored=True, default_factory=dict)


@fact
class BurnInHeldEntry(EntryContent):
    """The burn-in goes on for `hours` more, because of drift."""

    kind = "burnin.held"
    burn_in: str
    hours: float
    drifts: tuple[str, ...]


@fact
class BurnInOverEntry(EntryContent):
    """Its phases are over, and nothing is missing: nodes of its fabric run collectives together before it ends.

    `drifts` and `rates`: as in the entry of its end.
    """

    kind = "burnin.over"
    burn_in: str
    drifts: tuple[str, ...] = ()
    rates: Mapping[str, float] = shown(omit_stored=True, default_factory=dict)


@fact
class BurnInNoteEntry(EntryContent):
    """What happened to a burn-in, or to its load: `event`, and `text` in words.

    `silent`: the node does not answer. `interrupted`: something is over that kept the load or us from going on.
    `stopped`: the load of a burn-in that ended early has ended too, as the node says.
    """

    kind = "burnin.note"
    burn_in: str
    event: BurnInEvent
    text: str = ""


@fact
class BurnInEndedEntry(EntryContent):
    """The burn-in ended after `hours`: how, and why. `drifts`: lines for people. `rates`: Gflop/s by GPU.

    `fault`: the class of the fault that stands beside it in the ledger, for a verdict on the node; else "". `part`: the
    load part that gave no result at all, as a tool does that is missing or refuses its arguments; else "".
    """

    kind = "burnin.ended"
    burn_in: str
    outcome: BurnInOutcome
    reason: str
    hours: float
    drifts: tuple[str, ...] = ()
    rates: Mapping[str, float] = shown(omit_stored=True, default_factory=dict)
    fault: str = shown(omit_stored=True, default="")
    part: str = shown(omit_stored=True, default="")
