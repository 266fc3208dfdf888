"""Monitoring: what Prometheus and Alertmanager call the things that assay reads and the faults that it knows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.specs.credential_reference import TokenReference
from assay.model.specs.kernel_log_patterns import RegexText
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

MetricName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]
MetricLabel = Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]
ReadingPath = Annotated[str, Field(pattern=r"^\w+(\.\w+)*$")]
FaultName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*(\.([a-z0-9][a-z0-9-]*|\{[a-zA-Z_]\w*\}))+$")]

LabelSpelling = Literal["plain", "pci", "index"]


class MetricReading(StrictModel):
    """From which metric a reading comes, and how.

    `reads` its number as it is, as a `truth` (0 is false), or as the seconds `since` a time; or the text of `label`.
    `factor` brings it to the reading's unit. `words` say what numbers mean, `unknown` which number means none.
    `where` narrows the series by labels.
    """

    metric: MetricName
    reads: Literal["number", "truth", "since"] = "number"
    label: MetricLabel | None = None
    factor: float = Field(default=1, gt=0)
    words: dict[str, str] = Field(default={})
    unknown: float | None = None
    where: dict[MetricLabel, str] = Field(default={})


class MetricGroup(StrictModel):
    """Readings of the node itself, or of each part that the label `by` names, below the branch `under` of the probe.

    `spelled`: `pci` turns DCGM's `00000000:1B:00.0` into Linux's `0000:1b:00.0`. `parts`: which of them are meant.
    """

    under: ReadingPath
    by: MetricLabel | None = None
    spelled: LabelSpelling = "plain"
    parts: RegexText | None = None
    readings: dict[ReadingPath, MetricReading] = Field(default={})


class XidGauge(StrictModel):
    """A gauge that holds the last error code of a GPU, for ever: 0 before there was one. `by` names the GPU's place."""

    metric: MetricName
    by: MetricLabel


class AlertRule(StrictModel):
    """Which fault an alert is. All labels of `match` must be there; "*" stands for any text.

    `{LABEL}` in `fault` is that label's text. `over`: the fault ends when the alert is resolved; without it, silence is
    no cure.
    """

    match: dict[MetricLabel, str] = Field(min_length=1)
    fault: FaultName
    over: bool = False
    source: str = Field(min_length=1)


class AlertMapping(StrictModel):
    """How alerts name a node, and a part of it (`index`: 3 is gpu3): the first of these labels that the alert has.

    `token` is what Alertmanager must show; without one, nothing is taken from it.
    """

    node: list[MetricLabel] = Field(min_length=1)
    part: dict[MetricLabel, LabelSpelling] = Field(default={})
    token: TokenReference | None = None
    rules: list[AlertRule] = Field(default=[])


class Monitoring(SpecDocument):
    """Metrics → readings, alerts → faults. A site with other names writes a document that `extends` this."""

    kind: Literal["Monitoring"]
    sources: list[str] = Field(min_length=1)
    groups: dict[SpecName, MetricGroup] = Field(default={})
    xid: XidGauge | None = None
    alerts: AlertMapping | None = None

    @model_validator(mode="after")
    def _each_reading_once(self) -> Monitoring:
        seen: dict[tuple[str, bool], str] = {}
        for name, group in self.groups.items():
            for path in group.readings:
                place = (f"{group.under}.{path}", group.by is None)
                if seen.setdefault(place, name) != name:
                    raise ValueError(f"{place[0]} is read in both {seen[place]} and {name}")
        return self
