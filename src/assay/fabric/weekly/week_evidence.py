"""A week as a document of evidence, so that its verdict can be derived again when the scans are gone.

Name `week-FABRIC`; its time is that of the newest scan.

```
channels.week   {"start", "scans", "whole", "gap_h", "counted_h", "newest", "asked", "silent", "unseen"}: readings
channels.ports  {"value": {GUID: {PORT: {"errors": 12, "temperature": {"usual": 46.5, "a_week": 0.1}, …}}}}
```

Every port that was designed then is there. What was not told of it is left out, and so is what it did not count, and a
first or last value that is the usual.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.week import FabricWeek, PortWeekSummary, ReadingTrend
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fabric.ports_and_cables import PortId
from assay.model.reading import value

WEEK_FIELDS = ("scans", "whole", "gap_h", "counted_h", "newest", "asked", "silent", "unseen")
PORT_FIELDS = ("errors", "symbol_errors", "downs_a_day", "stuck", "ber", "rx", "tx", "vendor", "part", "serial")
TREND_KEYS = frozenset(one.key for one in READINGS)
FIGURES = 6


def format_week_subject(fabric: str) -> str:
    """Return the name under which the week of a fabric is kept."""
    return f"week-{fabric}"


def make_week_evidence(week: FabricWeek) -> EvidenceDocument:
    """Return the document."""
    about = {name: value(getattr(week, name)) for name in WEEK_FIELDS}
    ports: dict[str, dict[str, Any]] = {}
    for port, told in week.ports.items():
        ports.setdefault(port.guid, {})[str(port.number)] = _port(told)
    about["unseen"] = value(list(week.unseen))
    channels = {"week": {"start": value(week.start.isoformat()), **about}, "ports": value(ports)}
    return EvidenceDocument(format_week_subject(week.fabric), week.end, channels)


def read_week_evidence(document: EvidenceDocument) -> FabricWeek:
    """Return the week of a document. Raises Trouble for one that is no week."""
    about = {name: document.read("week", name).value for name in WEEK_FIELDS}
    ports = document.read("ports").value
    try:
        return FabricWeek(
            document.node.removeprefix("week-"),
            datetime.fromisoformat(document.read("week", "start").value),
            document.at,
            **{**about, "unseen": tuple(about["unseen"])},
            ports={PortId(guid, int(n)): _told(said) for guid, of in ports.items() for n, said in of.items()},
        )
    except (TypeError, ValueError, KeyError, AttributeError) as wrong:
        raise AssayError(f"is no week of a fabric: {wrong}", fix="run `assay fabric evaluate` again") from None


def _port(told: PortWeekSummary) -> dict[str, Any]:
    said = {name: known for name in PORT_FIELDS if (known := getattr(told, name))}
    return {**said, **{key: _trend(trend) for key, trend in told.trends.items()}}


def _trend(trend: ReadingTrend) -> dict[str, Any]:
    known = {"usual": _short(trend.usual)}
    known |= {name: _short(one) for name, one in (("first", trend.first), ("last", trend.last)) if one != trend.usual}
    known |= {"a_week": _short(trend.a_week)} if trend.a_week is not None else {}
    return known | ({"points": [[at, _short(number)] for at, number in trend.points]} if trend.points else {})


def _short(number: float) -> float:
    return float(f"{number:.{FIGURES}g}")


def _told(said: Mapping[str, Any]) -> PortWeekSummary:
    trends = {key: _trend_of(one) for key, one in said.items() if key in TREND_KEYS}
    counts: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in said.items() if name not in TREND_KEYS
    }
    return PortWeekSummary(**counts, trends=trends)


def _trend_of(said: Mapping[str, Any]) -> ReadingTrend:
    points = tuple((at, number) for at, number in said.get("points", ()))
    usual = said["usual"]
    return ReadingTrend(usual, said.get("first", usual), said.get("last", usual), said.get("a_week"), points)
