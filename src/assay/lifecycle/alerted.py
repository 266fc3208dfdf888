"""What alerts of a site's own monitoring show of faults: the channel `alerts` of evidence.

`alerts.firing` is a list of `{"fault", "part", "at", "detail", "fingerprint"}`; `at` is when the alert began to fire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.lifecycle.sightings import Sighting
from assay.lifecycle.when import written
from assay.model.evidence import Evidence

SOURCE = "alert"


def in_alerts(evidence: Evidence, parts: Mapping[str, str]) -> Iterator[Sighting]:
    """Yield the alerts that fire. One that is sent again has the mark that it had."""
    firing = evidence.read("alerts", "firing")
    for alert in firing.value if firing.kind == "value" else ():
        at = written(alert["at"])
        part = parts.get(alert["part"].lower(), alert["part"])
        yield Sighting(alert["fault"], part, at, alert["detail"], SOURCE, f"{at}|{alert['fingerprint']}")
