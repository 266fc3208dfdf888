"""What alerts of a site's own monitoring show of faults: the channel `alerts` of evidence.

`alerts.firing` is a list of `{"fault", "part", "at", "detail", "fingerprint"}`; `at` is when the alert began to fire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.lifecycle.lines import is_time
from assay.lifecycle.sightings import Sighting
from assay.lifecycle.when import written
from assay.model.evidence import Evidence

SOURCE = "alert"


def in_alerts(evidence: Evidence, parts: Mapping[str, str]) -> Iterator[Sighting]:
    """Yield the alerts that fire. One that is sent again has the mark that it had."""
    firing = evidence.read("alerts", "firing")
    listed = firing.value if firing.kind == "value" and isinstance(firing.value, list) else []
    for alert in filter(_is_alert, listed):
        at = written(alert["at"])
        part = parts.get(alert["part"].lower(), alert["part"])
        yield Sighting(alert["fault"], part, at, alert["detail"], SOURCE, f"{at}|{alert['fingerprint']}")


def _is_alert(alert: Any) -> bool:
    texts = ("fault", "part", "at", "detail", "fingerprint")
    return isinstance(alert, dict) and all(isinstance(alert.get(name), str) for name in texts) and is_time(alert["at"])
