"""Stores a week as a document of evidence, so that its verdict can be derived again when the scans are gone.

The document is named `week-FABRIC`. Its time is that of the newest scan.

```
channels.week   the fields of FabricWeek, each a reading; "before" has [end, digest] of weeks to compare it with
channels.ports  {"value": {GUID: {PORT: {"errors": 12, "trends": {"temperature": {"median": 46.5, …}}, …}}}}
```

Every port of the design at that time is there. Values that are empty or 0 are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from assay.fabric.weekly.week import FabricWeek
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.facts import from_json, to_json
from assay.model.reading import value
from assay.model.specs.fabric.cable import PortId

SIGNIFICANT_DIGITS = 6
APART = timedelta(days=6)
"""An evaluation that ended less long ago has most of its scans in common with this one."""
REMEMBERED = timedelta(days=16)


class StoredWeek(NamedTuple):
    """The end of an evaluated week, and the digest under which the evidence store has it."""

    at: datetime
    digest: str


def choose_week_before(stored: Iterable[StoredWeek], end: datetime) -> StoredWeek | None:
    """Return the newest stored week that ended at least `APART` before `end`, None without one."""
    return max((week for week in stored if end - week.at >= APART), default=None)


def forget_old_weeks(stored: Iterable[StoredWeek], end: datetime) -> list[StoredWeek]:
    """Return the weeks that a later evaluation may still be compared with."""
    return [week for week in sorted(stored) if timedelta() < end - week.at <= REMEMBERED]


def format_week_subject(fabric: str) -> str:
    """Return the subject under which the evidence store holds the week of a fabric."""
    return f"week-{fabric}"


def make_week_evidence(week: FabricWeek, before: Iterable[StoredWeek] = ()) -> EvidenceDocument:
    """Return the document of a week. `before` are the weeks that it, or a later one, may be compared with."""
    plain = to_json(week)
    ports: dict[str, dict[str, Any]] = {}
    for port, summary in plain.pop("ports").items():
        ports.setdefault(port.guid, {})[str(port.number)] = _round(summary)
    fields = {name: value(field) for name, field in plain.items()}
    fields["before"] = value([[stored.at.isoformat(), stored.digest] for stored in before])
    return EvidenceDocument(format_week_subject(week.fabric), week.end, {"week": fields, "ports": value(ports)})


def _round(plain: Any) -> Any:
    """Return numbers with few digits, since a large fabric has a million of them; times have more, and stay."""
    if isinstance(plain, float):
        return plain if abs(plain) >= 10**SIGNIFICANT_DIGITS else float(f"{plain:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(plain, list):
        return [_round(item) for item in plain]
    return {name: _round(item) for name, item in plain.items()} if isinstance(plain, dict) else plain


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
    try:
        week = {name: document.read("week", name).value for name in document.channels["week"]}
        ports = {
            PortId(guid, int(number)): summary
            for guid, numbers in document.read("ports").value.items()
            for number, summary in numbers.items()
        }
        times = {"start": datetime.fromisoformat(week["start"]), "end": document.at}
        return from_json(FabricWeek, {**week, **times, "ports": ports})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise AssayError(f"is no week of a fabric: {error}", fix="run `assay fabric evaluate` again") from None
