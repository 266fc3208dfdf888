"""What stands as Allure results: one for each node, a step for each area, and one below it for each check that fails.

Identities last: a result is its node (or rack, or fabric), and nothing that varies is a parameter. The format is what
Allure 2 and 3 both read.

What was kept of failures, as files that go along with a report: as far as they are still there, and fit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from assay.model.fleet import Fleet
from assay.model.outcome import CheckSubject, FailureArtefact, Measurement
from assay.model.traced_values import format_value
from assay.results.report.latest_outcomes import AbnormalOutcome, HolderStatus, StatusCount
from assay.results.report.latest_outcomes_schema import (
    FAILING,
    KNOWN,
    ON_TRIAL,
    ON_TRIAL_PASSING,
    PASSING,
    SKIPPED,
    UNKNOWN,
    suite_area,
)

MAX_ATTACHED_BYTES = 64 << 20
"""A report takes so much along; what is beyond that is named by its hash only."""
MEDIA_TYPES = {".txt": "text/plain", ".json": "application/json"}


class ReportAttachments:
    """Finds what is kept in `folders` as `ab/<sha256>.txt` or `.json`, and lays it beside the results."""

    def __init__(self, folders: Sequence[Path] = (), most: int = MAX_ATTACHED_BYTES) -> None:
        self._folders, self._left = folders, most
        self._files: dict[str, Path | None] = {}
        self._waiting: list[Path] = []

    def find_file(self, kept: FailureArtefact) -> tuple[str, str] | None:
        """Return the name of the file beside the results, and its media type; None where it does not come along."""
        if kept.digest not in self._files:
            self._files[kept.digest] = file = self._file(kept.digest)
            self._waiting += [file] if file else []
        found = self._files[kept.digest]
        return (_attachment_name(found), MEDIA_TYPES[found.suffix]) if found else None

    def copy_into(self, folder: Path) -> None:
        """Copy what was asked for since the last time."""
        for file in self._waiting:
            shutil.copyfile(file, folder / _attachment_name(file))
        self._waiting.clear()

    def _file(self, digest: str) -> Path | None:
        places = (folder / digest[:2] / f"{digest}{ending}" for folder in self._folders for ending in MEDIA_TYPES)
        found = next((place for place in places if digest and place.is_file()), None)
        if found is None or found.stat().st_size > self._left:
            return None
        self._left -= found.stat().st_size
        return found


def _attachment_name(file: Path) -> str:
    return f"{file.stem}-attachment{file.suffix}"


ALLURE_STATUS = {FAILING: "failed", UNKNOWN: "broken", KNOWN: "skipped", ON_TRIAL: "skipped", SKIPPED: "skipped"}
STATUS_PHRASES = {FAILING: "failed", UNKNOWN: "could not be judged", SKIPPED: "skipped"}
MAX_NAMED_FAILURES = 5
"""So many failures are named in a result's message; its steps have them all."""

AllureJson = dict[str, Any]


def allure_labels(
    fleet: Fleet, node: str, subject: str, phases: Iterable[str], fault: str
) -> Iterator[tuple[str, str]]:
    """Yield the labels of what was judged: pool, rack, node, every phase, fault class, commit of the specs."""
    place = fleet.nodes.get(node)
    parsed = CheckSubject.parse(subject)
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


def write_allure_results(
    folder: Path, fleet: Fleet, held: Iterable[HolderStatus], run: str, attachments: ReportAttachments
) -> int:
    """Write a result file for each holder, as of a run, with what was kept of failures; return how many."""
    folder.mkdir(parents=True)
    count = 0
    for holder in held:
        (folder / f"{result_uuid(holder.name, run)}-result.json").write_text(
            json.dumps(allure_result(fleet, holder, run, attachments))
        )
        attachments.copy_into(folder)
        count += 1
    return count


def allure_result(
    fleet: Fleet, holder: HolderStatus, run: str, attachments: ReportAttachments | None = None
) -> AllureJson:
    """Return the result of a node, rack or fabric, as of a run."""
    attachments = attachments or ReportAttachments()
    start = int(holder.measured * 1000)
    stop = start + sum(one.micros for one in holder.counted) // 1000
    subject = f"{holder.scope}/{holder.name}" if holder.name in fleet.nodes else holder.name
    node = holder.name if holder.name in fleet.nodes else ""
    faults = sorted({one.fault for one in holder.amiss if one.fault and one.stands == FAILING})
    marks = [*allure_labels(fleet, node, subject, holder.phases, ""), *(("fault", fault) for fault in faults)]
    marks += [("run", holder.run), *(("tag", tag) for tag in _tags(holder))]
    message = describe_problems(holder)
    return {
        "uuid": result_uuid(holder.name, run),
        "historyId": _md5(holder.name),
        "testCaseId": _md5(holder.name),
        "fullName": holder.name,
        "name": holder.name,
        "titlePath": [value for name, value in marks[:2]],
        "status": allure_status(holder),
        "statusDetails": {"message": message} if message else {},
        "stage": "finished",
        "start": start,
        "stop": stop,
        "parameters": [{"name": "node", "value": holder.name}],
        "labels": [{"name": name, "value": value} for name, value in marks],
        "steps": [
            step
            for name, counted in _areas_worst_first(holder)
            for step in _area_step(name, counted, holder, start, attachments)
        ],
        "description": _serial(fleet, node),
    }


def allure_status(holder: HolderStatus) -> str:
    """Return Allure's word for a holder: what is excused decides nothing, and what nothing passed is no pass."""
    if holder.count(FAILING):
        return "failed"
    if holder.count(UNKNOWN):
        return "broken"
    return "passed" if holder.count(PASSING) or not holder.count(SKIPPED) else "skipped"


def describe_problems(holder: HolderStatus) -> str:
    """Return what is wrong with a holder: `10 of 100 checks failed: …`, the first of them named; "" for nothing."""
    parts = []
    for stands, word in ((FAILING, "failed"), (UNKNOWN, "could not be judged")):
        ill = [one for one in holder.amiss if one.stands == stands]
        if ill:
            named = [f"{_check_title(one)} ({one.reason})" for one in ill[:MAX_NAMED_FAILURES]]
            named += [f"and {len(ill) - MAX_NAMED_FAILURES} more"] if len(ill) > MAX_NAMED_FAILURES else []
            parts.append(f"{len(ill)} of {holder.count()} checks {word}: {'; '.join(named)}")
    return "\n".join(parts)


def format_measurement(measurement: Measurement) -> str:
    """Return a measurement as one line: what, how much, and the limit with its line."""
    expected = format_bounds(measurement)
    limit = f" ({expected}{'; ' if measurement.source else ''}{measurement.source})" if expected else ""
    return f"{measurement.name} {format_value(measurement.value)} {measurement.unit}".rstrip() + limit


def format_bounds(measurement: Measurement) -> str:
    """Return what was expected of a measurement: `at least 16`, "" for anything."""
    low, high = measurement.at_least, measurement.at_most
    said = [f"at least {format_value(low)}"] if low is not None else []
    return " and ".join([*said, f"at most {format_value(high)}"] if high is not None else said)


def _areas_worst_first(holder: HolderStatus) -> list[tuple[str, list[StatusCount]]]:
    """Return the areas, those first in which something fails or cannot be judged."""
    by_area = groupby(sorted(holder.counted, key=attrgetter("area")), attrgetter("area"))
    held = [(name, list(counted)) for name, counted in by_area]
    return sorted(held, key=lambda each: not any(one.stands in (FAILING, UNKNOWN) for one in each[1]))


def _area_step(
    name: str, counted: Sequence[StatusCount], holder: HolderStatus, at: int, attachments: ReportAttachments
) -> Iterator[AllureJson]:
    """Yield the step of an area: what does not stand well below it, what does as a count."""
    amiss = [one for one in holder.amiss if suite_area(one.check) == name]
    whole = sum(one.count for one in counted)
    well = sum(one.count for one in counted if one.stands in (PASSING, ON_TRIAL_PASSING))
    counts = {stands: sum(one.count for one in counted if one.stands == stands) for stands in STATUS_PHRASES}
    told = [f"{counts[stands]} of {whole} {word}" for stands, word in STATUS_PHRASES.items() if counts[stands]]
    told += [f"{excused} excused or on trial"] if (excused := whole - well - sum(counts.values())) else []
    worst = next(
        (ALLURE_STATUS[stands] for stands in (FAILING, UNKNOWN) if counts[stands]), "passed" if well else "skipped"
    )
    stop = at + sum(one.micros for one in counted) // 1000
    below = list(_failure_steps(amiss, at, attachments))
    title = f"{name}: {', '.join(told) or f'{well} passed'}"
    yield {"name": title, "status": worst, "stage": "finished", "start": at, "stop": stop, "steps": below}


def _failure_steps(amiss: Sequence[AbnormalOutcome], at: int, attachments: ReportAttachments) -> Iterator[AllureJson]:
    """Yield a step for each failure; what one cause did to many checks of an area is one step."""
    alike: dict[tuple[int, str], list[AbnormalOutcome]] = {}
    for one in amiss:
        cause = one.subject + one.check if one.stands == FAILING else one.reason
        alike.setdefault((one.stands, cause), []).append(one)
    for same in alike.values():
        step = _check_step(same[0], at, attachments)
        if len(same) > 1:
            named = ", ".join(map(_check_title, same[:MAX_NAMED_FAILURES])) + (
                f" and {len(same) - MAX_NAMED_FAILURES} more" if len(same) > MAX_NAMED_FAILURES else ""
            )
            step |= {"name": f"{_excuse_prefix(same[0])}{len(same)} checks: {same[0].reason} ({named})"}
        yield step


def _check_step(one: AbnormalOutcome, at: int, attachments: ReportAttachments) -> AllureJson:
    """Return the step of one check: what was expected, what was seen, and where that is written."""
    kept = [(each.name, *file) for each in one.artefacts if (file := attachments.find_file(each))]
    gone = [each for each in one.artefacts if not attachments.find_file(each)]
    return {
        "name": f"{_excuse_prefix(one)}{_check_title(one)}: {one.reason}",
        "status": ALLURE_STATUS[one.stands],
        "statusDetails": {"message": one.reason, "known": one.stands == KNOWN},
        "stage": "finished",
        "start": at,
        "stop": at,
        "parameters": [{"name": name, "value": value} for name, value in _parameters(one, gone)],
        "attachments": [{"name": name, "source": source, "type": kind} for name, source, kind in kept],
        "steps": [_measurement_step(each, at) for each in one.measurements],
    }


def _excuse_prefix(one: AbnormalOutcome) -> str:
    return {KNOWN: f"known ({one.known}): ", ON_TRIAL: "on trial: "}.get(one.stands, "")


def _parameters(one: AbnormalOutcome, gone: Iterable[FailureArtefact]) -> Iterator[tuple[str, str]]:
    broken = next((each for each in one.measurements if not _is_within_bounds(each)), None)
    if broken:
        yield "expected", f"{format_bounds(broken)} {broken.unit}".rstrip()
        yield "seen", f"{format_value(broken.value)} {broken.unit}".rstrip()
        if broken.source:
            yield "source", broken.source
    if one.fault:
        yield "fault", one.fault
    for each in gone:
        yield "not attached", f"{each.name}{f', sha256 {each.digest}' if each.digest else ''}"
    yield "run", one.run


def _measurement_step(measurement: Measurement, at: int) -> AllureJson:
    status = "passed" if _is_within_bounds(measurement) else "failed"
    return {"name": format_measurement(measurement), "status": status, "stage": "finished", "start": at, "stop": at}


def _is_within_bounds(measurement: Measurement) -> bool:
    low, high, value = measurement.at_least, measurement.at_most, measurement.value
    return (low is None or value >= low) and (high is None or value <= high)


def _check_title(one: AbnormalOutcome) -> str:
    """Return a check and the part that it judged, as people say them: `pcie_link gpu3`."""
    function = one.check.rpartition("::")[2].removeprefix("test_")
    part = one.subject.split("/", 2)[2:]
    return " ".join([function, *part])


def _tags(holder: HolderStatus) -> Iterator[str]:
    if holder.count(KNOWN):
        yield "known issue"
    if holder.count(ON_TRIAL):
        yield "check on trial"


def _serial(fleet: Fleet, node: str) -> str:
    place = fleet.nodes.get(node)
    return f"{place.spec}, serial {place.serial}, {place.site} {place.rack} U{place.u}" if place else ""


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
