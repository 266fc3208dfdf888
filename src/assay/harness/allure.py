"""What stands as Allure results: one for each node, a step for each area, and one below it for each check that fails.

Identities last: a result is its node (or rack, or fabric), and nothing that varies is a parameter. The format is what
Allure 2 and 3 both read.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from assay.harness.attached import Attachments
from assay.harness.overview.fold import area
from assay.harness.overview.standing import Amiss, Counted, Holder
from assay.harness.overview.tables import FAILING, KNOWN, ON_TRIAL, SKIPPED, TRIED_WELL, UNKNOWN, WELL
from assay.harness.told import plainly
from assay.model.fleet import Fleet
from assay.model.outcome import Artefact, Measurement
from assay.model.subject import Subject

STATUS = {FAILING: "failed", UNKNOWN: "broken", KNOWN: "skipped", ON_TRIAL: "skipped", SKIPPED: "skipped"}
SAYS = {FAILING: "failed", UNKNOWN: "could not be judged", SKIPPED: "skipped"}
SHOWN = 5
"""So many failures are named in a result's message; its steps have them all."""

Json = dict[str, Any]


def labels(fleet: Fleet, node: str, subject: str, phases: Iterable[str], fault: str) -> Iterator[tuple[str, str]]:
    """Yield the labels of what was judged: pool, rack, node, every phase, fault class, commit of the specs."""
    place = fleet.nodes.get(node)
    parsed = Subject.parse(subject)
    yield "pool", place.pool if place else parsed.scope
    yield "rack", place.rack if place else parsed.name.removeprefix("rack-")
    yield "node", node or parsed.name
    for phase in phases:
        yield "phase", phase
    if fault:
        yield "fault", fault
    yield "spec", f"{fleet.commit[:12] or 'no commit'}{'+changes' if fleet.dirty else ''}"


def result_uuid(holder: str, run: str) -> str:
    """Return the id of a holder's result in the report of a run; the report's page of it is named after this."""
    return str(uuid.UUID(_md5(f"{holder}\0{run}")))


def write_results(folder: Path, fleet: Fleet, held: Iterable[Holder], run: str, attachments: Attachments) -> int:
    """Write a result file for each holder, as of a run, with what was kept of failures; return how many."""
    folder.mkdir(parents=True)
    count = 0
    for holder in held:
        (folder / f"{result_uuid(holder.name, run)}-result.json").write_text(
            json.dumps(result(fleet, holder, run, attachments))
        )
        attachments.lay_into(folder)
        count += 1
    return count


def result(fleet: Fleet, holder: Holder, run: str, attachments: Attachments | None = None) -> Json:
    """Return the result of a node, rack or fabric, as of a run."""
    attachments = attachments or Attachments()
    start = int(holder.measured * 1000)
    stop = start + sum(one.micros for one in holder.counted) // 1000
    subject = f"{holder.scope}/{holder.name}" if holder.name in fleet.nodes else holder.name
    node = holder.name if holder.name in fleet.nodes else ""
    faults = sorted({one.fault for one in holder.amiss if one.fault and one.stands == FAILING})
    marks = [*labels(fleet, node, subject, holder.phases, ""), *(("fault", fault) for fault in faults)]
    marks += [("run", holder.run), *(("tag", tag) for tag in _tags(holder))]
    message = said(holder)
    return {
        "uuid": result_uuid(holder.name, run),
        "historyId": _md5(holder.name),
        "testCaseId": _md5(holder.name),
        "fullName": holder.name,
        "name": holder.name,
        "titlePath": [value for name, value in marks[:2]],
        "status": status(holder),
        "statusDetails": {"message": message} if message else {},
        "stage": "finished",
        "start": start,
        "stop": stop,
        "parameters": [{"name": "node", "value": holder.name}],
        "labels": [{"name": name, "value": value} for name, value in marks],
        "steps": [
            step for name, counted in _areas(holder) for step in _area(name, counted, holder, start, attachments)
        ],
        "description": _serial(fleet, node),
    }


def status(holder: Holder) -> str:
    """Return Allure's word for a holder: what is excused decides nothing, and what nothing passed is no pass."""
    if holder.count(FAILING):
        return "failed"
    if holder.count(UNKNOWN):
        return "broken"
    return "passed" if holder.count(WELL) or not holder.count(SKIPPED) else "skipped"


def said(holder: Holder) -> str:
    """Return what is wrong with a holder: `10 of 100 checks failed: …`, the first of them named; "" for nothing."""
    parts = []
    for stands, word in ((FAILING, "failed"), (UNKNOWN, "could not be judged")):
        ill = [one for one in holder.amiss if one.stands == stands]
        if ill:
            named = [f"{_title(one)} ({one.reason})" for one in ill[:SHOWN]]
            named += [f"and {len(ill) - SHOWN} more"] if len(ill) > SHOWN else []
            parts.append(f"{len(ill)} of {holder.count()} checks {word}: {'; '.join(named)}")
    return "\n".join(parts)


def measured(measurement: Measurement) -> str:
    """Return a measurement as one line: what, how much, and the limit with its line."""
    expected = bounds(measurement)
    limit = f" ({expected}{'; ' if measurement.source else ''}{measurement.source})" if expected else ""
    return f"{measurement.name} {plainly(measurement.value)} {measurement.unit}".rstrip() + limit


def bounds(measurement: Measurement) -> str:
    """Return what was expected of a measurement: `at least 16`, "" for anything."""
    low, high = measurement.at_least, measurement.at_most
    said = [f"at least {plainly(low)}"] if low is not None else []
    return " and ".join([*said, f"at most {plainly(high)}"] if high is not None else said)


def _areas(holder: Holder) -> list[tuple[str, list[Counted]]]:
    """Return the areas, those first in which something fails or cannot be judged."""
    by_area = groupby(sorted(holder.counted, key=attrgetter("area")), attrgetter("area"))
    held = [(name, list(counted)) for name, counted in by_area]
    return sorted(held, key=lambda each: not any(one.stands in (FAILING, UNKNOWN) for one in each[1]))


def _area(name: str, counted: Sequence[Counted], holder: Holder, at: int, attachments: Attachments) -> Iterator[Json]:
    """Yield the step of an area: what does not stand well below it, what does as a count."""
    amiss = [one for one in holder.amiss if area(one.check) == name]
    whole = sum(one.count for one in counted)
    well = sum(one.count for one in counted if one.stands in (WELL, TRIED_WELL))
    counts = {stands: sum(one.count for one in counted if one.stands == stands) for stands in SAYS}
    told = [f"{counts[stands]} of {whole} {word}" for stands, word in SAYS.items() if counts[stands]]
    told += [f"{excused} excused or on trial"] if (excused := whole - well - sum(counts.values())) else []
    worst = next((STATUS[stands] for stands in (FAILING, UNKNOWN) if counts[stands]), "passed" if well else "skipped")
    stop = at + sum(one.micros for one in counted) // 1000
    below = list(_below(amiss, at, attachments))
    title = f"{name}: {', '.join(told) or f'{well} passed'}"
    yield {"name": title, "status": worst, "stage": "finished", "start": at, "stop": stop, "steps": below}


def _below(amiss: Sequence[Amiss], at: int, attachments: Attachments) -> Iterator[Json]:
    """Yield a step for each failure; what one cause did to many checks of an area is one step."""
    alike: dict[tuple[int, str], list[Amiss]] = {}
    for one in amiss:
        cause = one.subject + one.check if one.stands == FAILING else one.reason
        alike.setdefault((one.stands, cause), []).append(one)
    for same in alike.values():
        step = _check(same[0], at, attachments)
        if len(same) > 1:
            named = ", ".join(map(_title, same[:SHOWN])) + (
                f" and {len(same) - SHOWN} more" if len(same) > SHOWN else ""
            )
            step |= {"name": f"{_excuse(same[0])}{len(same)} checks: {same[0].reason} ({named})"}
        yield step


def _check(one: Amiss, at: int, attachments: Attachments) -> Json:
    """Return the step of one check: what was expected, what was seen, and where that is written."""
    kept = [(each.name, *file) for each in one.artefacts if (file := attachments.of(each))]
    gone = [each for each in one.artefacts if not attachments.of(each)]
    return {
        "name": f"{_excuse(one)}{_title(one)}: {one.reason}",
        "status": STATUS[one.stands],
        "statusDetails": {"message": one.reason, "known": one.stands == KNOWN},
        "stage": "finished",
        "start": at,
        "stop": at,
        "parameters": [{"name": name, "value": value} for name, value in _parameters(one, gone)],
        "attachments": [{"name": name, "source": source, "type": kind} for name, source, kind in kept],
        "steps": [_measurement(each, at) for each in one.measurements],
    }


def _excuse(one: Amiss) -> str:
    return {KNOWN: f"known ({one.known}): ", ON_TRIAL: "on trial: "}.get(one.stands, "")


def _parameters(one: Amiss, gone: Iterable[Artefact]) -> Iterator[tuple[str, str]]:
    broken = next((each for each in one.measurements if not _held(each)), None)
    if broken:
        yield "expected", f"{bounds(broken)} {broken.unit}".rstrip()
        yield "seen", f"{plainly(broken.value)} {broken.unit}".rstrip()
        if broken.source:
            yield "source", broken.source
    if one.fault:
        yield "fault", one.fault
    for each in gone:
        yield "not attached", f"{each.name}{f', sha256 {each.digest}' if each.digest else ''}"
    yield "run", one.run


def _measurement(measurement: Measurement, at: int) -> Json:
    status = "passed" if _held(measurement) else "failed"
    return {"name": measured(measurement), "status": status, "stage": "finished", "start": at, "stop": at}


def _held(measurement: Measurement) -> bool:
    low, high, value = measurement.at_least, measurement.at_most, measurement.value
    return (low is None or value >= low) and (high is None or value <= high)


def _title(one: Amiss) -> str:
    """Return a check and the part that it judged, as people say them: `pcie_link gpu3`."""
    function = one.check.rpartition("::")[2].removeprefix("test_")
    part = one.subject.split("/", 2)[2:]
    return " ".join([function, *part])


def _tags(holder: Holder) -> Iterator[str]:
    if holder.count(KNOWN):
        yield "known issue"
    if holder.count(ON_TRIAL):
        yield "check on trial"


def _serial(fleet: Fleet, node: str) -> str:
    place = fleet.nodes.get(node)
    return f"{place.spec}, serial {place.serial}, {place.site} {place.rack} U{place.u}" if place else ""


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
