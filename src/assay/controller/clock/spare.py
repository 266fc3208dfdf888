"""Loads one node that nobody uses, and keeps what it answered as its newest evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.actions.workloads import Standing, named
from assay.controller.desk import Desk
from assay.model.errors import Trouble
from assay.model.evidence import Evidence
from assay.model.fleet import Node
from assay.model.reading import as_reading
from assay.model.schedule import Verification
from assay.observe.ask import document
from assay.observe.collect import collect
from assay.observe.reach import probe
from assay.observe.store import EvidenceStore
from assay.observe.transports.choice import Transports
from assay.observe.transports.command import words_there

Came = Literal["loaded", "yielded", "unknown"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of loading a node: it was, it made room (`why` says for whom), or nobody knows (why not)."""

    node: str
    came: Came
    why: str = ""


def load(desk: Desk, node: Node, how: Verification, standing: Standing, store: EvidenceStore) -> Loaded:
    """Load a node in its spare time, or, where it is closed to customers, as it is; keep the evidence in `store` too.

    What its probe reads afterwards is part of the evidence, so that it shows what the load brought about.
    """
    try:
        answer = _apart(desk, node, how) if standing.cordon else _spare(desk, node, how)
    except Trouble as trouble:
        return Loaded(node.name, "unknown", str(trouble))
    if isinstance(answer, Loaded):
        return answer
    seen = collect(desk.fleet, [node.name], clock=desk.clock, store=desk.evidence)[node.name]
    whole = Evidence(node.name, seen.at, {**seen.channels, "active": answer})
    desk.evidence.put(whole)
    store.put(whole)
    return Loaded(node.name, "loaded")


def _spare(desk: Desk, node: Node, how: Verification) -> Mapping[str, Any] | Loaded:
    words, given = words_there(node, _arguments(desk, how))
    spare = desk.workloads(node).spare(node.name, words, given, how.within_minutes * 60)
    if spare.yielded:
        return Loaded(node.name, "yielded", spare.yielded)
    if spare.code is None:
        said = " ".join(spare.errors.split())[-200:]
        why = said or f"it did not begin, or not end by itself within {how.within_minutes:g} min"
        return Loaded(node.name, "unknown", why)
    return _active(node, document(spare.output, spare.errors.encode(), spare.code))


def _apart(desk: Desk, node: Node, how: Verification) -> Mapping[str, Any] | Loaded:
    """Load a node on which nobody can be placed, through its transport; a job that is there all the same goes first."""
    if jobs := desk.workloads(node).jobs(node.name):
        return Loaded(node.name, "yielded", named(jobs))
    within_s = how.within_minutes * 60
    return _active(node, probe(node, _arguments(desk, how), within_s, Transports(desk.evidence)))


def _arguments(desk: Desk, how: Verification) -> list[str]:
    at = desk.clock.now().isoformat()
    return ["--active", ",".join(how.parts), "--seconds", str(how.seconds), "--at", at]


def _active(node: Node, answer: Mapping[str, Any]) -> Mapping[str, Any] | Loaded:
    whole = as_reading(answer)
    active = answer.get("active")
    leaf = whole or (as_reading(active) if active is not None else None)
    if leaf is not None or not isinstance(active, Mapping):
        return Loaded(node.name, "unknown", leaf.reason if leaf else "its answer holds nothing of the load")
    return active
