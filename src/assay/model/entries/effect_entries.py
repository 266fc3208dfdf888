"""Entries about effects: the intent before anything is done, failed attempts, the end, and what was read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.model.entries.entry_content import EntryContent, stored_as


@dataclass(frozen=True, slots=True)
class EffectIntentEntry(EntryContent):
    """Written before an effect starts. `effect` is its id, `decision` what asked for it.

    `before` holds what the action read first, `params` its parameters, `by` who carries it out: host, pid, until.
    `named_by` is the entry that gave the machine its name.
    """

    kind = "effect.intent"
    effect: str
    action: str
    decision: str = field(metadata=stored_as(missing=""))
    reason: str = field(default="", metadata=stored_as(missing=""))
    before: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    by: Mapping[str, Any] = field(default_factory=dict)
    named_by: str = field(default="", metadata=stored_as(missing="", omit_empty=True))


@dataclass(frozen=True, slots=True)
class EffectTriedEntry(EntryContent):
    """Attempt number `attempt` came to nothing. The next one is made from `again_at` (ISO 8601 UTC) on."""

    kind = "effect.tried"
    effect: str
    action: str = field(metadata=stored_as(missing=""))
    attempt: int
    reason: str
    again_at: str


@dataclass(frozen=True, slots=True)
class EffectProgressEntry(EntryContent):
    """How far an effect got. Its kind says how far; `facts` holds what was read back."""

    effect: str
    action: str = field(metadata=stored_as(missing=""))
    reason: str = field(metadata=stored_as(missing=""))
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
