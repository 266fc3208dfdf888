"""The shapes of what `assay trends` prints with `--format json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from assay.model.entries.faults import TrendStage
from assay.model.facts import fact, shown


@fact
class TrendWarningAnswer:
    """A part that gets worse among its peers, and what follows."""

    node: str
    """Its node."""
    subject: str
    """The part."""
    name: str
    """The measurement."""
    unit: str
    """The unit of values and limit, "" for a count or a ratio."""
    serial: str
    """The serial number of the part, "" if it is not known."""
    from_: float = shown("from")
    """What was usual for it."""
    to: float
    """Its value of the last days."""
    peers: int
    """With how many others it was compared."""
    peers_change: float
    """How these have changed meanwhile."""
    score: float
    """Its evidence: of how many healthy parts one looks so by chance, as the decimal logarithm."""
    limit: float | None
    """The limit of the measurement, null if there is none."""
    days: Sequence[float] | None
    """In how many days it reaches the limit (low, middle, high); null while history is too short to tell."""
    group: str
    """What it shares with others that get worse, "" for nothing."""
    because: str
    """The reason in a sentence."""
    p: float | None
    """The chance that the warning is right, from 0 to 1; null while that is not known."""
    answer: str
    """What pays, in words."""
    rule: str
    """The rule that warns."""
    stage: str
    """The stage that the rule has earned."""
    rate_days: float | None
    """In how many days it reaches the limit in a straight line; null if it does not move towards one."""


@fact
class SharedGroup:
    """A group that explains several warnings of one measurement."""

    trait: str
    """What its members share, such as rack or firmware."""
    value: str
    """Which one."""
    name: str
    """The measurement."""
    named: int
    """How many of its members get worse."""
    members: int
    """How many members it has."""
    p: float
    """The chance of this if the group had nothing to do with it, from 0 to 1."""
    because: str
    """The reason in a sentence."""

    @property
    def title(self) -> str:
        """The group and how sure it is, in a few words."""
        return f"{self.trait} {self.value}: {self.named} of {self.members} (p {self.p:.2g})"


@fact
class HitRecord:
    """How a rule has fared."""

    right: int
    """How many warnings were right."""
    wrong: int
    """How many were wrong."""
    cannot_tell: int
    """Of how many nobody can tell."""
    precision: float | None
    """The share of right ones among right and wrong, from 0 to 1; null without any."""
    precision_interval: tuple[float, float] | None
    """Both ends of its 90 % interval (Wilson); null without any."""
    recall: float | None
    """Of the failures that it could foresee, the share that it warned of, from 0 to 1; null without any."""
    lead_days: tuple[float, float] | None
    """By how many days right warnings came before: the median, and what nine in ten exceed; null without any."""

    @property
    def judged(self) -> int:
        """How many warnings were right or wrong."""
        return self.right + self.wrong


@fact
class PastRecord(HitRecord):
    """How a rule would have fared in past weeks."""

    recall_of_all: float | None
    """Of all failures, with a sign or without, the share that was warned of, from 0 to 1; null without any."""


@fact
class PastRuleAnswer(PastRecord):
    """How the rule would have fared in the past, by the present history."""

    name: str
    """The name of the rule."""
    threshold: float
    """From which score on it warns."""
    threshold_from: Literal["history", "default"]
    """Whether history is long enough to tell the threshold."""
    alarms_per_1000_node_days: float
    """How many false alarms are permitted, per 1,000 nodes and days."""
    false_per_1000_node_days: float | None
    """How many of the past weeks' warnings were wrong, per 1,000 nodes and days; null while that is not known."""
    series: int
    """How many series of values were judged."""
    warnings: int
    """How many warn now."""
    because: str
    """The past in a sentence, and whether the permitted false alarms were kept."""


@fact
class ActComparison:
    """What acting on warnings changed, by those that were left alone by chance."""

    acted: int
    """How many warnings ended that were acted on."""
    acted_failed: int
    """Of how many of these the part failed, and no check had found it."""
    left_alone: int
    """How many ended that were left alone."""
    left_alone_failed: int
    """Of how many of these the part failed, and no check had found it."""
    prevented: float | None
    """How many failures acting prevented; null where none was left alone."""
    prevented_interval: tuple[float, float] | None
    """Both ends of its 90 % interval (Newcombe); null where none was left alone."""
    tests: int
    """How many idle tests nodes had while a warning was open that was acted on."""


@fact
class RuleRecord(HitRecord):
    """How a rule has fared, by the warnings of its present revision that assay recorded."""

    name: str
    """The name of the rule."""
    revision: str
    """The name of its present text."""
    fault: str
    """The fault class that a warning becomes; "" for none."""
    stage: TrendStage
    """The stage that it has."""
    declared_stage: TrendStage
    """The stage that the fleet repository declares."""
    lost_because: str
    """Why it has not the declared stage; "" if it has."""
    open: int
    """How many warnings have not ended."""
    overtaken: int
    """How many were overtaken by something else, such as a repair."""
    failures: int
    """How many failures it could have foreseen since its first warning."""
    cost_node_hours: float
    """What the idle tests of warned nodes cost in node-hours; some would have been made without a warning."""
    acts: ActComparison
    """What acting on its warnings prevented."""

    @property
    def has_warned(self) -> bool:
        """Whether there is any warning."""
        return self.judged + self.open + self.overtaken + self.cannot_tell > 0


@fact
class TrendsAnswer:
    """Which parts get worse among their peers."""

    warnings: list[TrendWarningAnswer]
    """The measurements of these parts, the worst first; with any, the exit code is 1."""
    parts: int
    """How many parts they are of."""
    series: int
    """How many series of values were compared."""
    newest_age_days: float
    """How old the newest value is, in days."""
    groups: list[SharedGroup]
    """What several of them share, the surest first."""
    cannot_tell: int
    """Of how many series of values nobody can tell whether they get worse: the sum of the next three."""
    few_peers: int
    """How many have too few peers."""
    silent: int
    """How many gave too little in the last days: the part is gone, its clock is wrong, its unit or name changed."""
    too_new: int
    """How many have too few days before."""
    rules: list[PastRuleAnswer]
    """How the rule would have fared in the past."""
    records: list[RuleRecord]
    """The records of the rules that have warned."""
    refused_rows: int
    """How many rows of the files were refused, as they cannot be right."""
    refused: list[str] | None = shown(omit=True, default=None)
    """The first of these, each with its line and its mistake; missing if there are none."""
    unread: list[str] | None = shown(omit=True, default=None)
    """The damaged files that were left out, each with its mistake; missing if there are none."""
