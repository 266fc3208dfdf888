"""FaultCatalog: how faults are recognised, how bad they are, whose they are, and what is to be done."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from assay.model.spec import Spec, Strict

Severity = Literal["catastrophic", "degraded", "informational"]
Blame = Literal["hardware", "application", "operator", "environment"]
Remedy = Literal["none", "ticket", "reset", "reboot", "powercycle", "zap", "triage", "rma"]

_XID = re.compile(r"gpu\.xid\.(\d+)")


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles)]


class Sel(Strict):
    """An entry of the BMC's event log: by its message id, by its text, or by both."""

    message_id: str | None = None
    message: Pattern | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Sel:
        if self.message_id is None and self.message is None:
            raise ValueError("give message_id, message, or both")
        return self


class Threshold(Strict):
    """A measurement of any outcome, passed or not, beyond a bound."""

    name: str
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _has_a_bound(self) -> Threshold:
        if (self.above is None) == (self.below is None):
            raise ValueError("give either above or below")
        return self


class Treatment(Strict):
    """How bad, whose fault, and the remedy that the ladder starts with."""

    severity: Severity
    blame: Blame
    remedy: Remedy


class FaultClass(Treatment):
    """One class of faults.

    Recognised by any of: `xid` numbers, `kernel_log` (a regular expression; its groups `pci` or `part` say which
    part), `sel`, `measurement`, or a failed check that carries the class's name (`check: true` says that one does).
    It becomes a fault of its severity at `count` sightings within `window_minutes` and is informational before;
    sightings within `burst_seconds` of each other are one. `source` says where the judgement comes from.
    """

    summary: str
    source: str = Field(min_length=1)
    xid: list[int] = Field(default=[])
    kernel_log: Pattern | None = None
    sel: Sel | None = None
    measurement: Threshold | None = None
    check: bool = False
    count: int = Field(default=1, ge=1)
    window_minutes: float = Field(default=60, gt=0)
    burst_seconds: float = Field(default=5, ge=0)

    @model_validator(mode="after")
    def _can_be_recognised(self) -> FaultClass:
        if not (self.xid or self.kernel_log or self.sel or self.measurement or self.check):
            raise ValueError("nothing recognises this class; give xid, kernel_log, sel, measurement or check: true")
        return self


class FaultCatalog(Spec):
    """Fault classes by name. A class with several `xid` treats each as `gpu.xid.N`; `unknown` treats all others."""

    kind: Literal["FaultCatalog"]
    sources: list[str] = Field(min_length=1)
    unknown: Treatment
    classes: dict[str, FaultClass]

    @model_validator(mode="after")
    def _each_xid_once(self) -> FaultCatalog:
        owners: dict[int, str] = {}
        for name, fault in self.classes.items():
            for xid in fault.xid:
                if xid in owners:
                    raise ValueError(f"XID {xid} belongs to both {owners[xid]} and {name}")
                owners[xid] = name
        return self

    def class_of(self, name: str) -> FaultClass | None:
        """Return the class of that name; `gpu.xid.13` is found in the class that lists XID 13."""
        if name in self.classes:
            return self.classes[name]
        if xid := _XID.fullmatch(name):
            return next((fault for fault in self.classes.values() if int(xid[1]) in fault.xid), None)
        return None

    def treatment(self, name: str) -> Treatment:
        """Return how a fault of that name is treated."""
        return self.class_of(name) or self.unknown
