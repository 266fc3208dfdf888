"""How long things take in a replay. Each span says where it comes from; an answer names those it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class AssumedDuration:
    """A number of hours, and where it comes from."""

    hours: float
    source: str

    @property
    def as_timedelta(self) -> timedelta:
        """The span as a time."""
        return timedelta(hours=self.hours)

    def as_json(self) -> dict[str, float | str]:
        """Return plain JSON data."""
        return {"hours": self.hours, "source": self.source}


LOOK_DURATION = AssumedDuration(1 / 60, "Crusoe instance health, OCI fast conditions: passive checks every 60 s")
VENDOR_DURATION = AssumedDuration(240, "our own choice: a part is returned and exchanged within ten days")


@dataclass(frozen=True, slots=True)
class ReplayDurations:
    """`actions` by name; an action that is not there takes no time. A drain takes its time where customers are on.

    `suites`: a verification that loads the hardware; `look`: one that only looks. `person`: until a person certifies a
    node whose fault is cleared; `vendor`: the same, where a dossier goes along with it.
    """

    actions: Mapping[str, AssumedDuration]
    suites: AssumedDuration
    person: AssumedDuration
    look: AssumedDuration = LOOK_DURATION
    vendor: AssumedDuration = VENDOR_DURATION

    def as_json(self) -> dict[str, dict[str, float | str]]:
        """Return plain JSON data, every span by name."""
        whole = {"suites": self.suites, "look": self.look, "person": self.person, "vendor": self.vendor}
        return {name: span.as_json() for name, span in {**self.actions, **whole}.items() if span.hours}
