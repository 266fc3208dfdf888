"""Metrics and alerts that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, rule
from assay.fleet.rules.names import nearest
from assay.model.faults import FaultCatalog, in_force
from assay.model.monitoring import Monitoring


@rule("ASY0160", "a node read through a Prometheus that nobody names", why="It would never be read.")
def no_prometheus(draft: Draft) -> Iterator[Finding]:
    """Find nodes whose transport is prometheus and whose `metrics` do not say which one."""
    for host in draft.hosts:
        if host.read and host.read.transport == "prometheus" and host.read.metrics is None:
            said = f"{host.name} is read through Prometheus, but no `metrics` are declared for it"
            yield Finding(host.place("transport"), said, 'declare metrics: {url: …, match: {Hostname: "{name}"}}')


@rule("ASY0161", "a monitoring map that does not exist", why="No metric of the node would mean anything.")
def no_map(draft: Draft) -> Iterator[Finding]:
    """Find nodes whose metrics are to be read by a Monitoring that is not there, once for each place that says so."""
    maps, seen = draft.names(Monitoring), set()
    for host in draft.hosts:
        if host.read is None or host.read.metrics is None or host.read.metrics.monitoring in maps:
            continue
        place = host.place("metrics")
        if place not in seen and draft.whole(Monitoring):
            seen.add(place)
            name = host.read.metrics.monitoring
            yield Finding(place, f"there is no Monitoring {name}", nearest(name, maps))


@rule(
    "ASY0162",
    "an alert that becomes a fault which no catalogue has",
    why="It would be noted and nothing would follow.",
    needs=(FaultCatalog,),
)
def no_fault(draft: Draft) -> Iterator[Finding]:
    """Find rules of alerts whose fault is of no class, where its name does not hang on a label."""
    catalogs = in_force(draft.of(FaultCatalog).values())
    known = {name for one in catalogs for name in one.classes}
    known |= {number for one in catalogs for fault in one.classes.values() for number in fault.numbers()}
    for one in draft.of(Monitoring).values():
        for number, entry in enumerate(one.alerts.rules if one.alerts else ()):
            if "{" not in entry.fault and entry.fault not in known:
                place = draft.at(f"Monitoring/{one.name}", "alerts", "rules", number, "fault")
                yield Finding(place, f"there is no fault class {entry.fault}", nearest(entry.fault, known))
