"""TrendRules: what counts as getting worse, which faults prove a warning right, and when a warning pays for an act."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.entries.faults import TrendStage
from assay.model.faults.fault_record import FaultRecord
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

TrendFault = Annotated[str, Field(pattern=r"^trend\.[a-z0-9.-]+$")]
TREND_CLASSES = "trend."
"""Begins the faults of warnings."""
WORN = 2
"""A node with so many open warnings is worn."""
CHECK_MARK = " of "
"""Ends the name of a measurement that several checks take; the check follows."""


def count_open_warnings(faults: Iterable[FaultRecord]) -> int:
    """Return how many warnings of trends are open among a node's faults."""
    return sum(fault.is_open and fault.fault_class.startswith(TREND_CLASSES) for fault in faults)


class ChangeDetector(StrictModel):
    """How a part's change is compared with its peers' changes.

    `alarms_per_1000_node_days`: what healthy parts may cost, over all measurements; the threshold follows from the
    fleet's own past. `peers_at_least`: with fewer peers, nothing is claimed. `counters`: names or patterns of
    measurements that only grow until they are reset; their growth in a day is compared.
    """

    alarms_per_1000_node_days: float = Field(default=0.1, gt=0, le=10)
    peers_at_least: int = Field(default=20, ge=20, le=10_000)
    counters: list[str] = Field(default=[])
    source: str = ""


class TrendRule(StrictModel):
    """Measurements that get worse together, and what follows.

    - `measurements`: names, or patterns such as `*_temperature`, in any case. The first rule that matches counts.
    - `fault`: the fault of a warning, a class of the catalogue.
    - `failures`: classes (or patterns) of the faults that prove a warning right. Empty: each fault of hardware.
    - `horizon_days`: a warning is wrong if nothing failed for so long.
    - `stage`: `record` makes a fault of each warning; `observe` only keeps it.
    """

    measurements: list[str] = Field(min_length=1)
    fault: TrendFault
    failures: list[str] = Field(default=[])
    horizon_days: int = Field(default=30, ge=7, le=365)
    stage: TrendStage = "observe"
    source: str = Field(min_length=1)

    def covers(self, measurement: str) -> bool:
        """Whether a measurement belongs to this rule, by its name with or without its check."""
        name = measurement.partition(CHECK_MARK)[0].lower()
        return any(fnmatchcase(name, pattern.lower()) for pattern in self.measurements)

    def is_proved_by(self, fault_class: str) -> bool:
        """Whether a fault of hardware proves a warning of this rule right."""
        return not self.failures or any(fnmatchcase(fault_class, pattern) for pattern in self.failures)


class TrendActCost(StrictModel):
    """What acting on a warning in vain costs.

    `node_hours`: of one act.
    """

    node_hours: float = Field(gt=0)
    source: str = Field(min_length=1)


class TrendCosts(StrictModel):
    """What an act costs: a `test` while the node is idle, a `drain` after its job with a burn-in, and a `failure`.

    `failure`: node-hours that a failure costs beyond the repair, which an act in time saves.
    """

    test: TrendActCost
    drain: TrendActCost
    failure: TrendActCost


class TrendActs(StrictModel):
    """What follows from warnings of rules that record, beyond a ticket and the order of idle tests and waves.

    `left_alone_share`: of so many nodes, drawn by chance, nothing follows: so the record tells what acting prevents.
    `last_for_jobs`: schedulers place jobs last on a node with two warnings.
    """

    left_alone_share: float = Field(default=0.0, ge=0, le=0.5)
    last_for_jobs: bool = False


class EarnedStage(StrictModel):
    """When a rule that records goes back to `observe` by itself: only a reviewed change brings it forward again.

    It does if `closed_at_least` warnings were right or wrong, and with this `confidence` the share of right ones is
    below what a test needs to pay for itself; or if it named more causes at once than `wave_factor` times its budget,
    and more than `wave_at_least`.
    """

    closed_at_least: int = Field(default=30, ge=5, le=1000)
    confidence: float = Field(default=0.9, gt=0.5, lt=1)
    wave_factor: float = Field(default=3, gt=1, le=100)
    wave_at_least: int = Field(default=5, ge=1, le=1000)
    source: str = ""


class TrendRules(SpecDocument):
    """What counts as getting worse, and what follows from it.

    `change`: the detector. `rules`: what a change means, by the measurement. `costs`: when a warning pays for an act.
    `acts`: what else follows. `earn`: when a rule loses its stage.
    """

    kind: Literal["TrendRules"]
    owner: str = Field(min_length=1)
    sources: list[str] = Field(min_length=1)
    change: ChangeDetector = Field(default_factory=ChangeDetector)
    costs: TrendCosts
    acts: TrendActs = Field(default_factory=TrendActs)
    earn: EarnedStage = Field(default_factory=EarnedStage)
    rules: dict[SpecName, TrendRule] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_fault_once(self) -> TrendRules:
        faults = [rule.fault for rule in self.rules.values()]
        if twice := {fault for fault in faults if faults.count(fault) > 1}:
            raise ValueError(f"{min(twice)} is the fault of two rules; give each rule its own")
        return self

    def find_rule(self, measurement: str) -> str:
        """Return the name of the first rule for a measurement, "" if none covers it."""
        return next((name for name, rule in self.rules.items() if rule.covers(measurement)), "")
