"""Writes the latest outcomes as Allure results: one for each node, with steps for areas and for failing checks.

A result keeps its identity over runs: it is a node, rack or fabric, and no parameter of it varies. Allure 2 and 3 both
read the format. What was kept of failures is copied beside the results, as far as it exists and fits.

The trend is made of the runs themselves: each is a point at its own time, also those from before the first report.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from assay.decide.state.node_state import NodeState
from assay.model.evidence import OBJECT_SUFFIX, read_digest, unpack_object
from assay.model.fleet import Fleet, allure_labels
from assay.model.outcome import FailureArtefact, Measurement, format_bounds, format_measurement, read_part
from assay.model.reading import format_value
from assay.model.ticket import Ticket
from assay.model.timestamps import parse_time
from assay.tell.report.failure_cards import find_incidents, list_faults_of_logs
from assay.tell.report.latest_outcomes import (
    FAILING,
    KNOWN,
    ON_TRIAL,
    ON_TRIAL_PASSING,
    PASSING,
    SKIPPED,
    UNKNOWN,
    AbnormalOutcome,
    AreaCounts,
    HolderStatus,
    LatestOutcomes,
    ReportedRun,
    StatusShape,
    suite_area,
)
from assay.tell.views.incident_groups import name_kind

MAX_ATTACHED_BYTES = 64 << 20
"""Size of all attachments of a report; further artefacts are only named, with their digests."""
MEDIA_TYPES = {".txt": "text/plain", OBJECT_SUFFIX: "application/json"}
ALLURE_STATUS = {FAILING: "failed", UNKNOWN: "broken", KNOWN: "skipped", ON_TRIAL: "skipped", SKIPPED: "skipped"}
STATUS_PHRASES = {FAILING: "failed", UNKNOWN: "could not be judged", SKIPPED: "skipped"}
TAGS = {KNOWN: "known issue", ON_TRIAL: "check on trial"}
MAX_NAMED_FAILURES = 5
"""Failures that a result's message names; its steps have all of them."""
ALLURE_PAGE, LOGS = "allure/index.html", "logs"
MIN_POINTS, MAX_POINTS, MAX_POINT_RESULTS = 20, 200, 100_000
"""So many runs the trend has: as many as have the third number of results together, within the other two."""


class ReportAttachments:
    """Finds artefacts in `folders`, as `ab/<sha256>.txt` or `.json.gz`, and copies them beside the results."""

    def __init__(self, folders: Sequence[Path] = (), max_bytes: int = MAX_ATTACHED_BYTES) -> None:
        self._folders, self._bytes_left = folders, max_bytes
        self._files: dict[str, Path | None] = {}
        self._to_copy: list[Path] = []

    def find_file(self, artefact: FailureArtefact) -> tuple[str, str] | None:
        """Return the name of the attached file and its media type; None where it is gone or does not fit."""
        if artefact.digest not in self._files:
            self._files[artefact.digest] = file = self._find_path(artefact.digest)
            self._to_copy += [file] if file else []
        path = self._files[artefact.digest]
        return (_attachment_name(path), MEDIA_TYPES["".join(path.suffixes)]) if path else None

    def copy_into(self, folder: Path) -> None:
        """Copy the files that were found since the last call."""
        for file in self._to_copy:
            (folder / _attachment_name(file)).write_bytes(unpack_object(file.read_bytes()))
        self._to_copy.clear()

    def _find_path(self, digest: str) -> Path | None:
        paths = (folder / digest[:2] / f"{digest}{suffix}" for folder in self._folders for suffix in MEDIA_TYPES)
        path = next((path for path in paths if digest and path.is_file()), None)
        size = _read_size(path) if path else None
        if size is None or size > self._bytes_left:
            return None
        self._bytes_left -= size
        return path


def _read_size(file: Path) -> int | None:
    """Return the size of an artefact, decompressed; None where it is damaged."""
    if "".join(file.suffixes) != OBJECT_SUFFIX:
        return file.stat().st_size
    try:
        return len(unpack_object(file.read_bytes()))
    except ValueError:
        return None


def _attachment_name(file: Path) -> str:
    return f"{read_digest(file)}-attachment{'.txt' if file.suffix == '.txt' else '.json'}"


AllureJson = dict[str, Any]


def result_uuid(holder: str, run: str) -> str:
    """Return the id of a holder's result in the report of a run. Allure names the result's page after it."""
    return str(uuid.UUID(_md5(f"{holder}\0{run}")))


def write_allure_results(
    folder: Path,
    fleet: Fleet,
    holders: Iterable[HolderStatus],
    run: str,
    attachments: ReportAttachments,
    tickets: Mapping[str, Mapping[str, Ticket]] = MappingProxyType({}),
    states: Mapping[str, NodeState] = MappingProxyType({}),
) -> Counter[str]:
    """Write a result file for each holder, as of a run, with attachments; return how many have which incident.

    `tickets` are the open ones of each node by id, to which its result leads. `states` are those of the nodes.
    """
    folder.mkdir(parents=True)
    incidents = Counter[str]()
    for judged in holders:
        holder = add_faults_of_logs(judged, states.get(judged.name))
        result = allure_result(fleet, holder, run, attachments)
        content = json.dumps(result | {"links": list(_list_links(fleet, holder.name, tickets.get(holder.name, {})))})
        (folder / f"{result_uuid(holder.name, run)}-result.json").write_text(content)
        attachments.copy_into(folder)
        incidents[find_incident(fleet, holder)] += 1
    return incidents


def list_history_points(
    latest: LatestOutcomes, known: Mapping[str, AllureJson], runs: Iterable[ReportedRun]
) -> Iterator[AllureJson]:
    """Yield a point for each of these runs: how each holder that it judged stood in it. `known` are points by run.

    A run without a file has none.
    """
    for run in runs:
        if run.run in known:
            yield known[run.run]
        elif (statuses := latest.read_run_statuses(run.run)) is not None:
            at = int(run.at * 1000)
            results = {
                history_id(holder): {
                    "id": result_uuid(holder, run.run),
                    "name": holder,
                    "fullName": holder,
                    "status": ALLURE_STATUS.get(status, "passed"),
                    "start": int(measured * 1000),
                    "stop": int(measured * 1000),
                    "url": "",
                    "historyId": history_id(holder),
                }
                for holder, (status, measured) in statuses.items()
            }
            about = {"uuid": run.run, "name": f"run {run.run}", "timestamp": at, "url": "", "metrics": {}}
            yield {**about, "knownTestCaseIds": [], "testResults": results}


def count_judgements_once(points: Iterable[AllureJson], standing: Mapping[str, float]) -> Iterator[AllureJson]:
    """Yield the points so that a node's history has each judgement once, and the trend still counts all of a run.

    A judgement of the same evidence, of a later run or of the present (`standing`: its time by holder), stands under a
    name that no history asks for.
    """
    last = {history_id(holder): int(measured * 1000) for holder, measured in standing.items()}
    for point in sorted(points, key=lambda point: point["timestamp"], reverse=True):
        results = {}
        for name, result in point["testResults"].items():
            results[f"again {name}" if last.get(name) == result["start"] else name] = result
            last[name] = result["start"]
        yield {**point, "testResults": results}


def history_id(holder: str) -> str:
    """Return the name by which Allure finds a holder in the points: it makes it of the case and its parameters."""
    return f"{_md5(_md5(holder))}.{_md5(f'node:{holder}')}"


def add_faults_of_logs(holder: HolderStatus, state: NodeState | None) -> HolderStatus:
    """Return the holder with the open faults that logs told, as failures in an area of their own: no check finds them.

    Without them, a node whose GPU fell off the bus since its last check would be one that passed.
    """
    faults = list_faults_of_logs(state)
    if not faults:
        return holder
    about = [(f"{LOGS}::{fault.fault_class}", fault.subject, FAILING, fault.detail, "") for fault in faults]
    failures = [
        AbnormalOutcome(*words, parse_time(fault.last_seen).timestamp(), holder.run, fault.fault_class)
        for words, fault in zip(about, faults, strict=True)
    ]
    areas, totals, phases = holder.shape
    totals = Counter(totals) + Counter({FAILING: len(failures)})
    shape = StatusShape((*areas, AreaCounts(LOGS, ((FAILING, len(failures)),))), totals, phases)
    return replace(holder, shape=shape, micros=(*holder.micros, 0), abnormal=[*failures, *holder.abnormal])


def find_incident(fleet: Fleet, holder: HolderStatus) -> str:
    """Return the fault class of the worst incident among a holder's failures; a check without one; "" for none."""
    causes = [incident.symptoms[0] for incident in find_incidents(fleet.sound_fault_catalog, holder)]
    return min(causes, key=lambda cause: cause.rank).fault_class if causes else ""


def list_categories(fleet: Fleet, incidents: Mapping[str, int]) -> list[AllureJson]:
    """Return Allure's categories: one for each incident, in the words of the fault catalogue, the most frequent first.

    A message names its node's values, so that it makes no category.
    """
    failed, catalog = [], fleet.sound_fault_catalog
    for name in sorted(filter(None, incidents), key=lambda name: (-incidents[name], name)):
        matchers = {"statuses": ["failed"], "labels": {"incident": f"^{re.escape(name)}$"}}
        failed.append({"name": name_kind(catalog, name), "matchers": matchers})
    broken = {"name": "Could not be judged, or evidence is too old", "matchers": {"statuses": ["broken"]}}
    return [{**category, "groupByMessage": False} for category in (*failed, broken)]


def allure_result(
    fleet: Fleet, holder: HolderStatus, run: str, attachments: ReportAttachments | None = None
) -> AllureJson:
    """Return the result of a node, rack or fabric, as of a run."""
    attachments = attachments or ReportAttachments()
    start = int(holder.measured * 1000)
    stop = start + sum(holder.micros) // 1000
    subject = f"{holder.scope}/{holder.name}" if holder.name in fleet.nodes else holder.name
    node = holder.name if holder.name in fleet.nodes else ""
    faults = sorted({outcome.fault for outcome in holder.abnormal if outcome.fault and outcome.status == FAILING})
    labels = [*allure_labels(fleet, node, subject, holder.shape.phases, ""), *(("fault", fault) for fault in faults)]
    incident = find_incident(fleet, holder)
    labels += [("incident", incident)] if incident else []
    labels += [("run", holder.run), *(("tag", tag) for status, tag in TAGS.items() if holder.count(status))]
    message = describe_problems(holder)
    declared = fleet.nodes.get(node)
    description = ""
    if declared:
        place = f"{declared.site} {declared.rack} U{declared.u}"
        description = f"{declared.spec}, serial {declared.serial}, {place}"
    return {
        "uuid": result_uuid(holder.name, run),
        "historyId": _md5(holder.name),
        "testCaseId": _md5(holder.name),
        "fullName": holder.name,
        "name": holder.name,
        "titlePath": [value for name, value in labels[:2]],
        "status": allure_status(holder),
        "statusDetails": {"message": message} if message else {},
        "stage": "finished",
        "start": start,
        "stop": stop,
        "parameters": [{"name": "node", "value": holder.name}],
        "labels": [{"name": name, "value": value} for name, value in labels],
        "steps": [
            _area_step(area, micros, holder, start, attachments) for area, micros in _list_areas_worst_first(holder)
        ],
        "description": description,
    }


def allure_status(holder: HolderStatus) -> str:
    """Return Allure's status of a holder. Excused outcomes do not count; passes on evidence too old say nothing."""
    if holder.count(FAILING):
        return "failed"
    if holder.count(UNKNOWN) or holder.stale:
        return "broken"
    return "passed" if holder.count(PASSING) or not holder.count(SKIPPED) else "skipped"


def describe_problems(holder: HolderStatus) -> str:
    """Return the problems of a holder: `10 of 100 checks failed: …`, with the first ones named; "" for none."""
    parts = []
    for status, word in ((FAILING, "failed"), (UNKNOWN, "could not be judged")):
        bad = [outcome for outcome in holder.abnormal if outcome.status == status]
        if bad:
            names = [f"{_check_title(outcome)} ({outcome.reason})" for outcome in bad[:MAX_NAMED_FAILURES]]
            names += [f"and {len(bad) - MAX_NAMED_FAILURES} more"] if len(bad) > MAX_NAMED_FAILURES else []
            parts.append(f"{len(bad)} of {holder.count()} checks {word}: {'; '.join(names)}")
    if holder.stale:
        parts.append(
            f"{holder.stale} of {holder.count()} checks passed on evidence that is older than the policy allows"
        )
    return "\n".join(parts)


def _list_areas_worst_first(holder: HolderStatus) -> list[tuple[AreaCounts, int]]:
    """Return the areas and how long they took, those with failures or errors first."""
    areas = list(zip(holder.shape.areas, holder.micros, strict=True))
    if not holder.count(FAILING, UNKNOWN):
        return areas
    return sorted(areas, key=lambda area: not any(status in (FAILING, UNKNOWN) for status, _ in area[0].counts))


def _area_step(
    area: AreaCounts, micros: int, holder: HolderStatus, at: int, attachments: ReportAttachments
) -> AllureJson:
    """Return the step of an area: passes as a count, and a step below it for each other outcome."""
    phrase, status = _describe_area(area.counts)
    abnormal = [outcome for outcome in holder.abnormal if suite_area(outcome.check) == area.area]
    return {
        "name": f"{area.area}: {phrase}",
        "status": status,
        "stage": "finished",
        "start": at,
        "stop": at + micros // 1000,
        "steps": list(_failure_steps(abnormal, at, attachments)),
    }


@lru_cache(maxsize=4096)
def _describe_area(counts: tuple[tuple[int, int], ...]) -> tuple[str, str]:
    """Return the counts of an area as a phrase, and Allure's status for them."""
    of_status = Counter(dict(counts))
    total, passed = of_status.total(), of_status[PASSING] + of_status[ON_TRIAL_PASSING]
    parts = [f"{of_status[status]} of {total} {word}" for status, word in STATUS_PHRASES.items() if of_status[status]]
    excused = total - passed - sum(of_status[status] for status in STATUS_PHRASES)
    parts += [f"{excused} excused or on trial"] if excused else []
    bad = (ALLURE_STATUS[status] for status in (FAILING, UNKNOWN) if of_status[status])
    return ", ".join(parts) or f"{passed} passed", next(bad, "passed" if passed else "skipped")


def _failure_steps(
    abnormal: Sequence[AbnormalOutcome], at: int, attachments: ReportAttachments
) -> Iterator[AllureJson]:
    """Yield a step for each failure; other outcomes of an area with one status and reason share a step."""
    groups: dict[tuple[int, str], list[AbnormalOutcome]] = {}
    for outcome in abnormal:
        cause = outcome.subject + outcome.check if outcome.status == FAILING else outcome.reason
        groups.setdefault((outcome.status, cause), []).append(outcome)
    for group in groups.values():
        first, count = group[0], len(group)
        step = _check_step(first, at, attachments)
        if count > 1:
            names = ", ".join(map(_check_title, group[:MAX_NAMED_FAILURES]))
            names += f" and {count - MAX_NAMED_FAILURES} more" if count > MAX_NAMED_FAILURES else ""
            step |= {"name": f"{_excuse_prefix(first)}{count} checks: {first.reason} ({names})"}
        yield step


def _check_step(outcome: AbnormalOutcome, at: int, attachments: ReportAttachments) -> AllureJson:
    """Return the step of one check: expected and seen value, source of the limit, artefacts and measurements."""
    attached = [(each.name, *file) for each in outcome.artefacts if (file := attachments.find_file(each))]
    gone = [each for each in outcome.artefacts if not attachments.find_file(each)]
    return {
        "name": f"{_excuse_prefix(outcome)}{_check_title(outcome)}: {outcome.reason}",
        "status": ALLURE_STATUS[outcome.status],
        "statusDetails": {"message": outcome.reason, "known": outcome.status == KNOWN},
        "stage": "finished",
        "start": at,
        "stop": at,
        "parameters": [{"name": name, "value": value} for name, value in _parameters(outcome, gone)],
        "attachments": [{"name": name, "source": source, "type": kind} for name, source, kind in attached],
        "steps": [
            {
                "name": format_measurement(measurement),
                "status": "passed" if _is_within_bounds(measurement) else "failed",
                "stage": "finished",
                "start": at,
                "stop": at,
            }
            for measurement in outcome.measurements
        ],
    }


def _excuse_prefix(outcome: AbnormalOutcome) -> str:
    return {KNOWN: f"known ({outcome.known}): ", ON_TRIAL: "on trial: "}.get(outcome.status, "")


def _parameters(outcome: AbnormalOutcome, gone: Iterable[FailureArtefact]) -> Iterator[tuple[str, str]]:
    broken = next((each for each in outcome.measurements if not _is_within_bounds(each)), None)
    if broken:
        yield "expected", f"{format_bounds(broken)} {broken.unit}".rstrip()
        yield "seen", f"{format_value(broken.value)} {broken.unit}".rstrip()
        if broken.source:
            yield "source", broken.source
    if outcome.fault:
        yield "fault", outcome.fault
    for artefact in gone:
        yield "not attached", f"{artefact.name}{f', sha256 {artefact.digest}' if artefact.digest else ''}"
    yield "run", outcome.run


def _is_within_bounds(measurement: Measurement) -> bool:
    low, high, value = measurement.at_least, measurement.at_most, measurement.value
    return (low is None or value >= low) and (high is None or value <= high)


def _check_title(outcome: AbnormalOutcome) -> str:
    """Return a check and the part that it judged: `pcie_link gpu3`."""
    function = outcome.check.rpartition("::")[2].removeprefix("test_")
    return f"{function} {read_part(outcome.subject)}".rstrip()


def _list_links(fleet: Fleet, holder: str, tickets: Mapping[str, Ticket]) -> Iterator[dict[str, str]]:
    """Yield what leads from a node to its page and its tickets, where the policy names the pages' address."""
    if (page := fleet.find_page("nodes", holder)) and holder in fleet.nodes:
        yield {"name": f"{holder}: why it stands so", "url": page, "type": "link"}
        for ident, ticket in tickets.items():
            yield {"name": ticket.title, "url": fleet.find_page("tickets", ident), "type": "issue"}


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class AllureLinks:
    """Links to the Allure report of a `run`, which browsers load over HTTP only. Without a run there are none."""

    run: str = ""

    def holder(self, name: str) -> str:
        """Return the link to the result of a node, rack or fabric, "" for none."""
        if not self.run:
            return ""
        result = hashlib.md5(result_uuid(name, self.run).encode(), usedforsecurity=False).hexdigest()
        return f"{ALLURE_PAGE}#{result}"


NO_ALLURE = AllureLinks()
