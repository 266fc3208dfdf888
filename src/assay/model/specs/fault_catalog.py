"""FaultCatalog: how faults are recognised, how severe they are, who is to blame, and the first remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.faults.fault_record import FaultBlame, FaultSeverity, Remedy
from assay.model.specs.customers import FaultCustomerWords
from assay.model.specs.fault_relations import FaultRelation, FaultRelations, OwnAct, SharedCause
from assay.model.specs.load_parts import LoadPart
from assay.model.specs.log_patterns import (
    UNKNOWN_XID,
    KernelLogMatcher,
    KernelLogPattern,
    RecoveryAction,
    find_search_words,
)
from assay.model.specs.nvlink_codes import NvlinkUnit
from assay.model.specs.spec_document import SpecDocument, StrictModel
from assay.model.specs.watched_lines import PatternSources, RegexText, WatchedLines

CheckName = Annotated[str, Field(pattern=r"^test_\w+$")]
EVENT_SECONDS = 2.0
"""Lines of one event come within these, in any order: a consequence may be written before what it follows from."""
XID_NAMES = "gpu.xid."
"""How the names of faults begin that are XIDs; a number follows."""


class SelPattern(StrictModel):
    """Entries of a BMC's event log, by MessageId, by text, or by both.

    - `keys`: patterns of a shell for the registry and the last part of the MessageId, such as `StorageDevice.Drive*`.
      They are asked before the text of any class: a registry means what it says, and words may mislead.
    - `critical_key`: a regular expression for the last part of the MessageId. A critical entry matches by that alone.
    - `severity`: all entries of this severity that no other class matches.

    `message_id`: the end of the entry's MessageId. `message`: a regular expression for its text.
    """

    keys: list[str] = Field(default_factory=list)
    message_id: str | None = None
    message: RegexText | None = None
    critical_key: RegexText | None = None
    severity: Literal["Critical"] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> SelPattern:
        given = (self.message_id, self.message, self.critical_key)
        by_entry = bool(self.keys) or any(content is not None for content in given)
        if by_entry == (self.severity is not None):
            raise ValueError("give keys, message_id, message or critical_key; or only severity")
        return self

    def names(self, message_id: str) -> bool:
        """Whether the registry and the key of a MessageId (`StorageDevice.1.0.DriveFailure`) are among the patterns."""
        key = f"{message_id.partition('.')[0]}.{message_id.rpartition('.')[2]}"
        return any(fnmatchcase(key, pattern) for pattern in self.keys)

    def matches(self, message_id: str, message: str, severity: str = "") -> bool:
        """Whether an entry matches by what it says. The pattern's `message_id` may omit the registry prefix."""
        key = message_id.rpartition(".")[2]
        if severity == "Critical" and self.critical_key is not None and re.fullmatch(self.critical_key, key):
            return True
        if self.message_id is not None and not message_id.endswith(self.message_id):
            return False
        if self.message is None:
            return self.message_id is not None
        return re.search(self.message, message) is not None


class MeasurementThreshold(StrictModel):
    """A measurement beyond a bound, in any outcome, passed or failed.

    `name`: the measurement. `above`, `below`: a value beyond it is the fault.
    """

    name: str
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _has_a_bound(self) -> MeasurementThreshold:
        if (self.above is None) == (self.below is None):
            raise ValueError("give either above or below")
        return self

    def is_exceeded(self, name: str, value: float) -> bool:
        """Whether a measurement has this name and is beyond the bound."""
        if name != self.name:
            return False
        return (self.above is not None and value > self.above) or (self.below is not None and value < self.below)


class SecondaryFaultRule(StrictModel):
    """The primary faults of a secondary one: a fault within `within_seconds` after one of `classes` follows from it.

    `where`: the primary fault must be on the same part, or anywhere on the node.
    """

    classes: list[str] = Field(min_length=1)
    within_seconds: float = Field(default=60, gt=0)
    where: Literal["part", "node"] = "part"


class FaultTreatment(StrictModel):
    """The severity of a fault, who is to blame, and the remedy with which the ladder starts.

    `severity`: catastrophic and degraded are answered, informational is recorded. `blame`: whose fault it is. `remedy`:
    the first rung.
    """

    severity: FaultSeverity
    blame: FaultBlame
    remedy: Remedy


class FaultClass(FaultTreatment):
    """One class of faults.

    - Recognised by any of: `xid` and `sxid` numbers, `kernel_log` (a regular expression or a KernelLogPattern), `sel`,
      `measurement`, a failed check with this fault class (`check: true`), or by assay itself (`by_assay: true`).
      `recovery_action` recognises an XID by its text.
    - It has its severity from `count` sightings within `window_minutes`; before, it is informational. Sightings within
      `burst_seconds` of each other count once.
    - A sighting within `settle_seconds` after boot belongs to the boot. One that `follows` another fault belongs to it.
    - A fault seen only in logs ends after `recover_hours` without a sighting. Without `recover_hours`, it stays open.
    - `units` decode the sub-codes of an NVLink XID. `investigate`: what a person does, as an order. `source`: where the
      judgement comes from. `for_customers`: what customers of the node are told.
    - `proof`: what must pass before the node serves again: parts of a load, which then run too and whose checks count
      on every part of the node, and passive checks by name. What of it was skipped, or gave nothing, proves nothing.

    `summary`: what happened, in a sentence. `xid`, `sxid`: NVIDIA's numbers. `kernel_log`: a regular expression or
    a KernelLogPattern. `recovery_action`: an XID that itself says what the GPU needs. `sel`: entries of the BMC's event
    log. `measurement`: a measured value beyond a bound. `check`: a failed check with this fault class. `by_assay`:
    assay itself finds it. `count`: so many sightings give it its severity. `window_minutes`: the time in which they
    are counted.
    """

    summary: str
    for_customers: FaultCustomerWords = Field(default_factory=FaultCustomerWords)
    source: str = Field(min_length=1)
    investigate: str = ""
    xid: list[int] = Field(default=[])
    sxid: list[int] = Field(default=[])
    kernel_log: RegexText | KernelLogPattern | None = None
    recovery_action: RecoveryAction | None = None
    sel: SelPattern | None = None
    measurement: MeasurementThreshold | None = None
    check: bool = False
    by_assay: bool = False
    units: list[NvlinkUnit] = Field(default=[])
    count: int = Field(default=1, ge=1)
    window_minutes: float = Field(default=60, gt=0)
    burst_seconds: float = Field(default=5, ge=0)
    settle_seconds: float = Field(default=0, ge=0)
    follows: SecondaryFaultRule | None = None
    recover_hours: float | None = Field(default=None, gt=0)
    proof: list[LoadPart | CheckName] = Field(default=[])

    @model_validator(mode="after")
    def _can_be_recognised(self) -> FaultClass:
        if not (self.xid or self.sxid or self.has_own_name):
            raise ValueError(
                "nothing recognises this class; give xid, sxid, kernel_log, sel, measurement or check: true"
            )
        return self

    @property
    def has_own_name(self) -> bool:
        """Whether faults can have the class's own name, not only that of an XID or SXID."""
        return bool(
            self.kernel_log or self.recovery_action or self.sel or self.measurement or self.check or self.by_assay
        )

    @property
    def kernel_log_pattern(self) -> KernelLogPattern | None:
        """The kernel log messages of this class."""
        return KernelLogPattern(pattern=self.kernel_log) if isinstance(self.kernel_log, str) else self.kernel_log

    def list_xid_names(self) -> list[str]:
        """Return the fault names of its XIDs and SXIDs."""
        return [*(f"gpu.xid.{xid}" for xid in self.xid), *(f"nvswitch.sxid.{sxid}" for sxid in self.sxid)]


class FaultCatalog(SpecDocument):
    """Fault classes by name. Each `xid` of a class is a fault `gpu.xid.N`, each `sxid` a fault `nvswitch.sxid.N`.

    `unknown` is the treatment of all other faults, `watched` the drivers whose errors a class must have, or they are
    not judged. One catalogue of a fleet has each.

    - `wordings`: further kernel messages of a class, by its name; its own or that of another catalogue. Each is a
      regular expression with its source. It begins as those of a watched subsystem do, or with any word.
    - `noise`: errors of watched subsystems that say nothing of a node: a regular expression, with the reason.
    - `relations`: what follows from what, so that one physical event is one incident. The first that fits counts.
    - `shared`: what lies outside of the nodes, and shows on many of them. `acts`: what assay causes itself.

    `classes`: the fault classes by name.
    """

    kind: Literal["FaultCatalog"]
    sources: list[str] = Field(min_length=1)
    unknown: FaultTreatment | None = None
    watched: WatchedLines | None = None
    wordings: dict[str, PatternSources] = Field(default={})
    noise: PatternSources = Field(default={})
    relations: list[FaultRelation] = Field(default=[])
    shared: list[SharedCause] = Field(default=[])
    acts: list[OwnAct] = Field(default=[])
    classes: dict[str, FaultClass] = Field(default={})

    @model_validator(mode="after")
    def _each_number_once(self) -> FaultCatalog:
        owners: dict[str, str] = {}
        for name, fault in self.classes.items():
            for number in fault.list_xid_names():
                if owners.setdefault(number, name) != name:
                    kind, _, code = number.rpartition(".")
                    shown = f"{'XID' if kind == 'gpu.xid' else 'SXID'} {code}"
                    raise ValueError(f"{shown} belongs to both {owners[number]} and {name}")
        return self

    @cached_property
    def _by_name(self) -> dict[str, FaultClass]:
        numbers = {number: fault for fault in self.classes.values() for number in fault.list_xid_names()}
        return numbers | self.classes

    @cached_property
    def nvlink_units(self) -> dict[str, list[NvlinkUnit]]:
        """The units that decode an NVLink XID, by the name of the fault."""
        return {name: fault.units for name, fault in self._by_name.items() if fault.units}

    @cached_property
    def kernel_lines(self) -> list[tuple[str, KernelLogPattern]]:
        """The kernel log messages of the classes, by the class's name; a class may have several wordings."""
        own = [(name, fault.kernel_log_pattern) for name, fault in self.classes.items()]
        heads = self.watched.heads if self.watched else ()
        further = [
            (name, KernelLogPattern.model_validate({"pattern": pattern} | find_search_words(pattern, sorted(heads))))
            for name, patterns in self.wordings.items()
            for pattern in patterns
        ]
        return [(name, line) for name, line in own if line] + further

    @cached_property
    def kernel_log_matcher(self) -> KernelLogMatcher:
        """Finds the kernel messages of these classes, and those that nobody judged."""
        return KernelLogMatcher(
            self.kernel_lines,
            [number for fault in self.classes.values() for number in fault.list_xid_names()],
            {name: fault.recovery_action for name, fault in self.classes.items() if fault.recovery_action},
            self.watched,
            self.noise,
        )

    def find_recovery_action(self, name: str) -> RecoveryAction | None:
        """Return the recovery action of a class: what an XID itself says that its GPU needs; None for other classes."""
        fault = self.find_class(name)
        return fault.recovery_action if fault else None

    @cached_property
    def primary_faults(self) -> frozenset[str]:
        """The faults that others may follow from."""
        return frozenset(name for fault in self.classes.values() if fault.follows for name in fault.follows.classes)

    @cached_property
    def longest_follow_seconds(self) -> float:
        """The longest time in seconds between a primary fault and one that follows from it."""
        return max((fault.follows.within_seconds for fault in self.classes.values() if fault.follows), default=0)

    @cached_property
    def fault_relations(self) -> FaultRelations:
        """What follows from what: what the classes say of their log lines, then the relations."""
        follows = [
            FaultRelation(
                cause=fault.follows.classes,
                symptoms=[*([name] if fault.has_own_name else []), *fault.list_xid_names()],
                where=fault.follows.where,
                minutes=fault.follows.within_seconds / 60,
                before_minutes=EVENT_SECONDS / 60,
                source=fault.source,
            )
            for name, fault in self.classes.items()
            if fault.follows
        ]
        return FaultRelations([*follows, *self.relations], self.shared)

    @property
    def default_treatment(self) -> FaultTreatment:
        """The treatment of a fault without a class; by default it is only recorded."""
        return self.unknown or DEFAULT_TREATMENT

    def find_class(self, name: str) -> FaultClass | None:
        """Return the class of a fault; `gpu.xid.13` belongs to the class that lists XID 13.

        A number that no class lists, as an alert may give it, belongs to the class of unknown XIDs.
        """
        known = self._by_name.get(name)
        if known is None and name.startswith(XID_NAMES) and name.removeprefix(XID_NAMES).isdecimal():
            return self.classes.get(UNKNOWN_XID)
        return known

    def describe(self, name: str) -> str:
        """Return what happened by the class of a fault, without a full stop; the name where no class says it."""
        known = self.find_class(name)
        return known.summary.partition(". ")[0].rstrip(".") if known else name

    @cached_property
    def proofs(self) -> dict[str, tuple[str, ...]]:
        """The parts of a load and the checks that prove a repair, by the name of the fault, where it asks for some."""
        return {name: tuple(fault.proof) for name, fault in self._by_name.items() if fault.proof}

    def find_treatment(self, name: str) -> FaultTreatment:
        """Return the treatment of a fault."""
        return self.find_class(name) or self.default_treatment


DEFAULT_TREATMENT = FaultTreatment(severity="informational", blame="operator", remedy="none")


def select_active_catalogs(catalogs: Iterable[FaultCatalog]) -> list[FaultCatalog]:
    """Return the catalogues that no other catalogue extends: an extended one counts only through the other."""
    every = list(catalogs)
    extended = {catalog.extends for catalog in every}
    return [catalog for catalog in every if catalog.name not in extended]


def merge_catalogs(catalogs: Iterable[FaultCatalog]) -> FaultCatalog:
    """Return all active catalogues as one. Raises ValueError for a fault in two, and for a wording without a class."""
    every = select_active_catalogs(catalogs)
    classes: dict[str, FaultClass] = {}
    for catalog in every:
        if shared := classes.keys() & catalog.classes.keys():
            raise ValueError(f"{min(shared)} stands in two fault catalogues, one of them {catalog.name}")
        classes |= catalog.classes
    wordings: dict[str, PatternSources] = {}
    for catalog in every:
        for name, patterns in catalog.wordings.items():
            if name not in classes:
                raise ValueError(f"{catalog.name} gives wordings of {name}, and no fault catalogue has that class")
            wordings[name] = wordings.get(name, {}) | patterns
    return FaultCatalog(
        kind="FaultCatalog",
        name="faults",
        sources=list(dict.fromkeys(source for catalog in every for source in catalog.sources)),
        unknown=next((catalog.unknown for catalog in every if catalog.unknown), None),
        watched=next((catalog.watched for catalog in every if catalog.watched), None),
        wordings=wordings,
        noise={pattern: source for catalog in every for pattern, source in catalog.noise.items()},
        relations=[relation for catalog in every for relation in catalog.relations],
        shared=[cause for catalog in every for cause in catalog.shared],
        acts=[act for catalog in every for act in catalog.acts],
        classes=classes,
    )
