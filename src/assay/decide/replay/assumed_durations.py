"""The durations that a replay assumes. Each has a source; the result lists those that it used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.decide.replay.replay_answers import AssumedSpan


@dataclass(frozen=True, slots=True)
class AssumedDuration:
    """A number of hours, and where it comes from."""

    hours: float
    source: str

    @property
    def as_timedelta(self) -> timedelta:
        """The span as a time."""
        return timedelta(hours=self.hours)

    def as_json(self) -> AssumedSpan:
        """Return plain JSON data."""
        return {"hours": self.hours, "source": self.source}


LOOK_DURATION = AssumedDuration(1 / 60, "Crusoe instance health, OCI fast conditions: passive checks every 60 s")
VENDOR_DURATION = AssumedDuration(240, "our own choice: a part is returned and exchanged within ten days")


@dataclass(frozen=True, slots=True)
class ReplayDurations:
    """`actions` by name. An action that is not listed takes no time.

    A drain takes its time only if customers use the node. `suites`: a verification that loads the hardware; `look`: one
    that only reads it. `person`: until a person certifies a node whose fault is cleared; `vendor`: the same for a node
    that goes back to its vendor.
    """

    actions: Mapping[str, AssumedDuration]
    suites: AssumedDuration
    person: AssumedDuration
    look: AssumedDuration = LOOK_DURATION
    vendor: AssumedDuration = VENDOR_DURATION

    def as_json(self) -> dict[str, AssumedSpan]:
        """Return plain JSON data, every span by name."""
        whole = {"suites": self.suites, "look": self.look, "person": self.person, "vendor": self.vendor}
        return {name: span.as_json() for name, span in {**self.actions, **whole}.items() if span.hours}
