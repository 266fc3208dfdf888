"""Entries about burn-in: it began on a node, a window of it is over, it goes on because of drift, it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.model.entries.entry_content import EntryContent, stored_as, stored_list

BurnInOutcome = Literal["done", "failed", "incomplete", "stopped", "none"]
"""`done`: all of it ran. `failed`: a verdict ended it. `incomplete`: parts gave no results. `stopped`: the node left
the state. `none`: no burn-in is for the node."""


@dataclass(frozen=True, slots=True)
class BurnInStartedEntry(EntryContent):
    """The burn-in `burn_in` (the id of its effect) of the spec `spec` runs on the node, for `hours`."""

    kind = "burnin.started"
    burn_in: str
    spec: str
    hours: float


@dataclass(frozen=True, slots=True)
class BurnInWindowEntry(EntryContent):
    """A window is over: its content (`BurnInWindow.as_json`), and how far the node's journal `log` has been read.

    `line` is the number of the last line that counts. `serials`: subject → serial number, where they are new. `boot`:
    the boot in which the node wrote it.
    """

    kind = "burnin.window"
    burn_in: str
    log: str
    line: int
    window: Mapping[str, Any]
    boot: str = ""
    serials: Mapping[str, str] = field(default_factory=dict, metadata=stored_as(omit_empty=True, missing={}))


@dataclass(frozen=True, slots=True)
class BurnInHeldEntry(EntryContent):
    """The burn-in goes on for `hours` more, because of drift."""

    kind = "burnin.held"
    burn_in: str
    hours: float
    drifts: tuple[str, ...] = field(metadata=stored_list())


@dataclass(frozen=True, slots=True)
class BurnInEndedEntry(EntryContent):
    """The burn-in ended after `hours`: how, and why. `drifts`: lines for people. `rates`: Gflop/s by GPU.

    `fault`: the class of what ended it, for a verdict that a rule of the policy may name; else "".
    """

    kind = "burnin.ended"
    burn_in: str
    outcome: BurnInOutcome
    reason: str
    hours: float
    drifts: tuple[str, ...] = field(default=(), metadata=stored_list(missing=()))
    rates: Mapping[str, float] = field(default_factory=dict, metadata=stored_as(omit_empty=True, missing={}))
    fault: str = field(default="", metadata=stored_as(omit_empty=True, missing=""))
