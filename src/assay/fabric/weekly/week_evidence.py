"""Stores a week as a document of evidence, so that its verdict can be derived again when the scans are gone.

The document is named `week-FABRIC`. Its time is that of the newest scan.

```
channels.week   {"start", "scans", "whole", "gap_h", "counted_h", "newest", "asked", "silent", "unseen",
                 "before", "moves", "read", "grown", "answered", "discoveries", "whole_discoveries",
                 "discovery_failure"}: readings; "before" has [end, digest] of the weeks
                 that it may be compared with
channels.ports  {"value": {GUID: {PORT: {"errors": 12, "temperature": {"usual": 46.5, "a_week": 0.1}, …}}}}
```

Every port of the design at that time is there. Values that are empty or 0 are left out, as are first and last values
that equal the median (`usual`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.week import FabricWeek, PortWeekSummary, ReadingTrend
from assay.fabric.weekly.week_changes import StoredWeek
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value
from assay.model.specs.fabric.cable import PortId

WEEK_KEYS = {
    "scans": "scans",
    "whole": "complete_scans",
    "gap_h": "gap_h",
    "counted_h": "counted_h",
    "newest": "newest",
    "asked": "reads_ports",
    "silent": "command_failure",
    "unseen": "unknown_reasons",
    "moves": "manager_moves",
    "read": "read_scans",
    "grown": "growth_scans",
    "answered": "answered_scans",
    "discoveries": "discoveries",
    "whole_discoveries": "whole_discoveries",
    "discovery_failure": "discovery_failure",
}
"""The keys of channel `week`, and the fields of FabricWeek that they hold."""
PORT_KEYS = {
    "errors": "errors",
    "symbol_errors": "symbol_errors",
    "downs_a_day": "downs_a_day",
    "down_scans": "down_scans",
    "error_scans": "error_scans",
    "stuck": "stuck_counter",
    "stuck_scans": "stuck_scans",
    "ber": "ber",
    "rx": "rx",
    "tx": "tx",
    "vendor": "vendor",
    "part": "part",
    "serial": "serial",
    "length_m": "length_m",
}
"""The keys of a port, and the fields of PortWeekSummary that they hold."""
TREND_KEYS = frozenset(reading.key for reading in READINGS)
SIGNIFICANT_DIGITS = 6


def format_week_subject(fabric: str) -> str:
    """Return the subject under which the evidence store holds the week of a fabric."""
    return f"week-{fabric}"


def make_week_evidence(week: FabricWeek, before: Iterable[StoredWeek] = ()) -> EvidenceDocument:
    """Return the document of a week. `before` are the weeks that it, or a later one, may be compared with."""
    fields = {key: value(getattr(week, name)) for key, name in WEEK_KEYS.items()}
    fields["read"] = value(dict(week.read_scans))
    fields["unseen"] = value(list(week.unknown_reasons))
    fields["moves"] = value([list(move) for move in week.manager_moves])
    ports: dict[str, dict[str, Any]] = {}
    for port, summary in week.ports.items():
        plain = {key: field for key, name in PORT_KEYS.items() if (field := getattr(summary, name))}
        plain |= {key: _serialize_trend(trend) for key, trend in summary.trends.items()}
        ports.setdefault(port.guid, {})[str(port.number)] = plain
    fields["before"] = value([[stored.at.isoformat(), stored.digest] for stored in before])
    channels = {"week": {"start": value(week.start.isoformat()), **fields}, "ports": value(ports)}
    return EvidenceDocument(format_week_subject(week.fabric), week.end, channels)


def list_stored_weeks(document: EvidenceDocument) -> list[StoredWeek]:
    """Return this stored week and those before it, as far as its document names them."""
    named = document.read("week", "before").value or []
    try:
        before = [StoredWeek(datetime.fromisoformat(at), str(digest)) for at, digest in named]
    except (TypeError, ValueError):
        before = []
    return [*before, StoredWeek(document.at, document.digest())]


def read_week_evidence(document: EvidenceDocument) -> FabricWeek:
    """Return the week of a document. Raises AssayError for a document that holds no week."""
    fields = {name: document.read("week", key).value for key, name in WEEK_KEYS.items()}
    ports = document.read("ports").value
    try:
        return FabricWeek(
            document.node.removeprefix("week-"),
            datetime.fromisoformat(document.read("week", "start").value),
            document.at,
            **{
                **fields,
                "unknown_reasons": tuple(fields["unknown_reasons"]),
                "read_scans": dict(fields["read_scans"] or {}),
                "growth_scans": fields["growth_scans"] or 0,
                "answered_scans": fields["answered_scans"] or 0,
                "discoveries": fields["discoveries"] or 0,
                "whole_discoveries": fields["whole_discoveries"] or 0,
                "discovery_failure": fields["discovery_failure"] or "",
                "manager_moves": tuple((at, before, now) for at, before, now in fields["manager_moves"] or ()),
            },
            ports={
                PortId(guid, int(number)): _read_port(plain)
                for guid, numbers in ports.items()
                for number, plain in numbers.items()
            },
        )
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise AssayError(f"is no week of a fabric: {error}", fix="run `assay fabric evaluate` again") from None


def _serialize_trend(trend: ReadingTrend) -> dict[str, Any]:
    ends = {name: _round(end) for name, end in (("first", trend.first), ("last", trend.last)) if end != trend.median}
    drift = {"a_week": _round(trend.per_week)} if trend.per_week is not None else {}
    if trend.scans:
        drift |= {"noise": _round(trend.noise), "of": trend.scans}
    points = {"points": [[at, _round(number)] for at, number in trend.points]} if trend.points else {}
    return {"usual": _round(trend.median), **ends, **drift, **points}


def _round(number: float) -> float:
    return float(f"{number:.{SIGNIFICANT_DIGITS}g}")


def _read_port(plain: Mapping[str, Any]) -> PortWeekSummary:
    fields: dict[str, Any] = {
        PORT_KEYS[key]: tuple(field) if isinstance(field, list) else field
        for key, field in plain.items()
        if key not in TREND_KEYS
    }
    return PortWeekSummary(
        **fields, trends={key: _read_trend(trend) for key, trend in plain.items() if key in TREND_KEYS}
    )


def _read_trend(plain: Mapping[str, Any]) -> ReadingTrend:
    points = tuple((at, number) for at, number in plain.get("points", ()))
    median = plain["usual"]
    return ReadingTrend(
        median,
        plain.get("first", median),
        plain.get("last", median),
        plain.get("a_week"),
        plain.get("noise", 0.0),
        plain.get("of", 0),
        points,
    )
