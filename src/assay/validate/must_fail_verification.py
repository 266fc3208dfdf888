"""Verifies checks against their recordings, in several processes, and reports which are not proved and why.

Each check is judged on the good recordings, and on each of its cases. A plan makes the sessions for that.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatchcase
from functools import cached_property
from multiprocessing import connection
from pathlib import Path
from threading import Thread
from typing import Any

from assay.declare.repository.tree import WorkingFolder
from assay.declare.spec_values_read_by_checks import read_check_inputs
from assay.model.errors import AssayError
from assay.model.evidence import read_at_path
from assay.model.facts import fact
from assay.model.fleet import Fleet
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.image import IMAGE, find_kernel_argument
from assay.model.specs.load_parts import TOOLS_OF_SITE
from assay.model.specs.node.node_spec import NodeSpec
from assay.validate.must_fail_recordings import (
    ExpectedVerdict,
    MustFailCase,
    ObservedVerdict,
    RecordedDocument,
    RecordingSession,
    apply_case,
    read_check_recording,
    read_must_fail_cases,
    run_recording_session,
)
from assay.validate.recorded_fleet import lay_recorded_fleet
from assay.validate.runs.due_checks import EvidenceKind, find_evidence_kind
from assay.validate.runs.subjects import NodeSelection, list_declared_checks

MAX_SESSION_CASES = 40  # cases of one sitting
PROOF_POOL = "proof"
NO_CASE = "no case makes it fail: write one into suites/recordings, a change to a good recording (docs/validation.md)"
CheckCases = list[tuple[CheckDeclaration, MustFailCase]]


class VerificationPlan:
    """The sessions for some checks of a fleet, judged by the fleet that their recordings are of, `recorded`.

    `unproved` gives the reason for each check that cannot be judged or has no case.
    """

    def __init__(self, fleet: Fleet, recorded: Fleet, wanted: Iterable[str]) -> None:
        self.fleet = fleet
        self.recorded = recorded
        self.suites = fleet.root / "suites"
        self._folder = self.suites / "recordings"
        self._cases = read_must_fail_cases(self._folder)
        chosen = set(wanted)
        self.checks = [check for check in list_declared_checks(fleet) if check.id in chosen]
        self.unproved = {check.id: NO_CASE for check in self.checks if not self._of(check)}
        self._reads = read_check_inputs(WorkingFolder(fleet.root))

    @property
    def undeclared_checks(self) -> list[str]:
        """The checks that have cases but that no catalog declares."""
        return sorted(self._cases.keys() - {check.id for check in list_declared_checks(self.fleet)})

    def make_sessions(self) -> list[RecordingSession]:
        """Return every session. Checks whose documents cannot be made are in `unproved` afterwards."""
        return [
            *self._of_nodes(self._resting_on("node")),
            *self._of_racks(self._resting_on("whole_rack")),
            *self._of_fabrics(self._resting_on("fabric"), "fabric"),
            *self._of_fabrics(self._resting_on("week"), "week"),
        ]

    def _of(self, check: CheckDeclaration) -> list[MustFailCase]:
        return self._cases.get(check.id, [])

    def _resting_on(self, evidence: EvidenceKind) -> list[CheckDeclaration]:
        resting = []
        for check in self.checks:
            reads = self._reads.get(check.id)
            if evidence == find_evidence_kind(reads.fixtures if reads else ()):
                resting.append(check)
        return resting

    def _cases_of(
        self, some: list[CheckDeclaration], among: list[str]
    ) -> Iterator[tuple[CheckDeclaration, MustFailCase, str]]:
        """Yield each case with the recording that it changes: the named one, or else the first that it fits."""
        for check in some:
            due = [name for name in among if self._is_due(check, name)]
            for case in self._of(check):
                named = [case.recording] if case.recording else due
                misfits = {name: self._find_misfit(name, case) for name in named if name in among}
                fitting = [name for name, misfit in misfits.items() if not misfit]
                if fitting:
                    yield check, case, fitting[0]
                elif misfits:
                    self.unproved[check.id] = f"{case.name}: {next(reversed(misfits.values()))}"

    def _is_due(self, check: CheckDeclaration, recording: str) -> bool:
        """Return whether a check is due on a node or fabric of the recording."""
        spec = self.recorded.node_specs.get(recording)
        design = None if spec else self.recorded.designs.get(recording.partition("-")[2])
        parts = spec.list_parts(True, False, TOOLS_OF_SITE) if spec else {"hcas", "fabric"}
        return not check.find_lacking({*parts, design.kind_of_links} if design else parts)

    def _find_misfit(self, name: str, case: MustFailCase) -> str:
        """Return why a case cannot change a recording, "" if it can."""
        try:
            apply_case(self._recorded(name), case)
        except AssayError as error:
            return str(error)
        return ""

    def _recorded(self, name: str) -> dict[str, Any]:
        if name not in self._documents:
            self._documents[name] = read_check_recording(self._folder, name)
        return self._documents[name]

    @cached_property
    def _documents(self) -> dict[str, dict[str, Any]]:
        return {}

    def _specs(self, *, racks: bool) -> list[NodeSpec]:
        """Return the node specs that have a recording."""
        known = sorted(self.recorded.node_specs.items())
        recorded = [spec for name, spec in known if (self._folder / f"{name}.json").is_file()]
        return [spec for spec in recorded if (spec.rack is not None) == racks]

    def _note_missing_recording(self, some: list[CheckDeclaration], subject: str) -> None:
        for check in some:
            self.unproved.setdefault(
                check.id,
                f"there is no good recording {subject}: python -m assay.validate.must_fail_recordings",
            )

    def _of_nodes(self, some: list[CheckDeclaration]) -> Iterator[RecordingSession]:
        """Yield sessions of good nodes with all checks, then of cases, each on a node beside an unchanged one."""
        specs = self._specs(racks=False)
        if some and not specs:
            self._note_missing_recording(some, "of a node spec")
            return
        for spec in specs if some else ():
            yield self._node_session(some, spec, [])
        by_spec: dict[str, CheckCases] = {}
        for check, case, name in self._cases_of(some, [spec.name for spec in specs]):
            by_spec.setdefault(name, []).append((check, case))
        for name, cases in by_spec.items():
            for first in range(0, len(cases), MAX_SESSION_CASES):
                yield self._node_session([], self.recorded.node_specs[name], cases[first : first + MAX_SESSION_CASES])

    def _node_session(self, well: list[CheckDeclaration], spec: NodeSpec, cases: CheckCases) -> RecordingSession:
        named: dict[str, MustFailCase | None] = {f"n{number:03}": case for number, (_, case) in enumerate(cases)}
        names = named or {"well": None}
        hosts: dict[str, Any] = {}
        laid: list[RecordedDocument] = []
        for name, case in names.items():
            for host, change in ((name, case), (f"{name}-beside", None)):
                hosts[host] = self._host(spec, rack=name, u=4)
                laid.append(RecordedDocument(host, spec.name, change))
        due = [check for check in well if self._is_due(check, spec.name)]
        wanted = [
            *(ExpectedVerdict(check.id, subject) for check in due for subject in _subjects(spec, check, "well")),
            *(_expected_verdict(check, case, name) for name, (check, case) in zip(names, cases, strict=False)),
        ]
        return RecordingSession(self.suites, self.recorded.root, tuple(laid), tuple(wanted), self._pool(spec, hosts))

    def _of_racks(self, some: list[CheckDeclaration]) -> Iterator[RecordingSession]:
        """Yield a session for each spec of a whole rack: a good rack, and one more rack for each case."""
        specs = self._specs(racks=True)
        if some and not specs:
            self._note_missing_recording(some, "of a node spec with a whole `rack`")
            return
        all_cases = list(self._cases_of(some, [spec.name for spec in specs]))
        for spec in specs if some else ():
            cases = [(check, case) for check, case, name in all_cases if name == spec.name]
            yield self._rack_session(some, spec, cases)

    def _rack_session(self, well: list[CheckDeclaration], spec: NodeSpec, cases: CheckCases) -> RecordingSession:
        trays = spec.rack.nodes if spec.rack else 1
        racks: dict[str, MustFailCase | None] = {"well": None, **{f"c{n}": case for n, (_, case) in enumerate(cases)}}
        hosts: dict[str, Any] = {}
        laid: list[RecordedDocument] = []
        for rack, case in racks.items():
            for tray in range(trays):
                hosts[f"{rack}-{tray:02}"] = self._host(spec, rack=rack, u=tray + 1)
                laid.append(RecordedDocument(f"{rack}-{tray:02}", spec.name, case if tray == trays // 2 else None))
        wanted = [
            *(ExpectedVerdict(check.id, f"{PROOF_POOL}/rack-well") for check in well),
            *(
                ExpectedVerdict(check.id, f"{PROOF_POOL}/rack-c{n}", case.name, case.verdict, case.says)
                for n, (check, case) in enumerate(cases)
            ),
        ]
        return RecordingSession(self.suites, self.recorded.root, tuple(laid), tuple(wanted), self._pool(spec, hosts))

    def _of_fabrics(self, some: list[CheckDeclaration], kind: str) -> Iterator[RecordingSession]:
        """Yield sessions of each design: the good scan (or week) with all checks, and one for each case."""
        names = {f"{kind}-{name}": name for name in self.recorded.designs}
        recorded = [name for name in names if (self._folder / f"{name}.json").is_file()]
        if some and not recorded:
            self._note_missing_recording(some, f"of a fabric ({kind}-DESIGN.json)")
            return
        everything = NodeSelection(self.recorded, tuple(self.recorded.nodes))
        for name in recorded if some else ():
            wanted = [
                ExpectedVerdict(check.id, str(subject))
                for check in some
                for subject, node in everything.due_subjects(check)
                if (self.recorded.nodes[node].settings.fabric if node else subject.name) == names[name]
            ]
            yield RecordingSession(self.suites, self.recorded.root, (RecordedDocument(name, name),), tuple(wanted))
        for check, case, name in self._cases_of(some, recorded):
            subject = self._fabric_subject(check, case, names[name])
            wanted_one = ExpectedVerdict(check.id, subject, case.name, case.verdict, case.says)
            yield RecordingSession(
                self.suites, self.recorded.root, (RecordedDocument(name, name, case),), (wanted_one,)
            )

    def _fabric_subject(self, check: CheckDeclaration, case: MustFailCase, design: str) -> str:
        if not case.subject:
            return f"fabric/{design}"
        node = self.recorded.nodes.get(case.subject.partition("/")[0])
        return f"{'fabric' if check.subject in ('switch', 'rail') or node is None else node.pool}/{case.subject}"

    def _host(self, spec: NodeSpec, *, rack: str, u: int) -> dict[str, Any]:
        """Return a host with the identity of the recorded node."""
        channels = self._recorded(spec.name)["channels"]
        serial = read_at_path(channels, ("probe", "host", "serial")).value
        guids = [read_at_path(channels, ("probe", "hca", hca.name, "guid")).value for hca in spec.hcas]
        known: dict[str, Any] = {"hca_guids": guids} if guids and all(guids) else {}
        booted = find_kernel_argument(str(read_at_path(channels, ("probe", "host", "cmdline")).value), IMAGE)
        if image := next((image for image in self.recorded.images.values() if image.label == booted), None):
            known["boot_image"] = image.name
        return {"rack": rack, "u": u, "serial_number": str(serial or "recorded"), "bmc_address": "192.0.2.1", **known}

    def _pool(self, spec: NodeSpec, hosts: Mapping[str, Any]) -> dict[str, object]:
        alike = Counter(node.profile for node in self.recorded.nodes.values() if node.spec == spec.name)
        profile = alike.most_common(1)[0][0] if alike else min(self.recorded.profiles)
        return {
            PROOF_POOL: {"vars": {"node_spec": spec.name, "profile": profile, "site": "proof"}, "hosts": dict(hosts)}
        }


def _subjects(spec: NodeSpec, check: CheckDeclaration, node: str) -> list[str]:
    """Return a node's subjects of a check's kind."""
    if check.subject == "rack":
        return [f"{PROOF_POOL}/rack-{node}"]
    if check.subject == "node":
        return [f"{PROOF_POOL}/{node}"]
    return [f"{PROOF_POOL}/{node}/{slot}" for slot in spec.slot_names(check.subject)]


def _expected_verdict(check: CheckDeclaration, case: MustFailCase, node: str) -> ExpectedVerdict:
    subject = (
        f"{PROOF_POOL}/rack-{node}"
        if check.subject == "rack"
        else "/".join(filter(None, (PROOF_POOL, node, case.subject)))
    )
    return ExpectedVerdict(check.id, subject, case.name, case.verdict, case.says)


VerificationProgress = Callable[[int, int], None]


def ignore_progress(done: int, due: int) -> None:
    """Take the progress and do nothing."""


@fact
class UnprovedCheck:
    """A check on a case that does not prove it."""

    check: str
    """The id of the check."""
    case: str
    """The case; "" for the check as a whole."""
    why: str
    """What does not hold."""


@fact
class SuiteProof:
    """Whether each check passes on the good recording and fails on its cases for the stated reason."""

    checks: tuple[str, ...]
    """The ids of the checks."""
    cases: int
    """How many cases were run."""
    unproved: tuple[UnprovedCheck, ...]
    """What does not hold; with any, the exit code is 1."""


def verify_checks(
    fleet: Fleet, patterns: Sequence[str] = (), *, jobs: int = 0, progress: VerificationProgress = ignore_progress
) -> SuiteProof:
    """Judge every check whose id matches one of `patterns` (none: every check) on all of its recordings.

    `jobs` processes share the work; with 0 this process does it, and captures its standard output and error meanwhile.
    Raises AssayError where no check matches, or where the recordings cannot be read.
    """
    declared = [check.id for check in list_declared_checks(fleet)]
    chosen = [check for check in declared if not patterns or any(_fits(check, pattern) for pattern in patterns)]
    if not chosen:
        raise AssayError(f"no declared check fits {' or '.join(patterns)}", fix="`assay suites list` names every check")
    with tempfile.TemporaryDirectory(prefix="assay-recorded-") as folder:
        prepared = VerificationPlan(fleet, lay_recorded_fleet(fleet, Path(folder) / "fleet"), chosen)
        sessions = [session for session in prepared.make_sessions() if session.expected]  # pytest without ids runs all
        seen = [verdict for some in _run_sessions(sessions, jobs, progress) for verdict in some]
    unproved = [UnprovedCheck(check, "", reason) for check, reason in prepared.unproved.items()]
    if not patterns:
        undeclared = prepared.undeclared_checks
        unproved += [UnprovedCheck(check, "", "recorded, but not declared") for check in undeclared]
    unproved += _find_unexpected(seen)
    unproved += _find_never_passing(chosen, seen, prepared.unproved)
    unproved.sort(key=lambda check: (check.check, check.case, check.why))
    return SuiteProof(tuple(chosen), sum(1 for verdict in seen if verdict.expected.case), tuple(unproved))


def _fits(check: str, pattern: str) -> bool:
    return fnmatchcase(check, pattern) or fnmatchcase(check.rpartition("::")[2], pattern) or check == pattern


def _run_sessions(
    sittings: Sequence[RecordingSession], jobs: int, progress: VerificationProgress
) -> Iterator[list[ObservedVerdict]]:
    """Yield the verdicts of each session, started with the largest. Sessions share nothing but the fleet."""
    by_size = sorted(sittings, key=lambda sitting: len(sitting.documents) + len(sitting.expected), reverse=True)
    progress(0, len(by_size))
    if not jobs or not by_size:
        yield from map(run_recording_session, by_size)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(by_size)), context, initializer=_end_with_pool) as pool:
        begun = [pool.submit(run_recording_session, sitting) for sitting in by_size]
        for done, ended in enumerate(as_completed(begun), start=1):
            progress(done, len(by_size))
            yield ended.result()


def _end_with_pool() -> None:
    """Let this worker end when the process that has the pool does: it would wait for work for ever."""
    if owner := multiprocessing.parent_process():
        Thread(target=lambda: os._exit(len(connection.wait([owner.sentinel]))), daemon=True).start()


def _find_unexpected(seen: Iterable[ObservedVerdict]) -> Iterator[UnprovedCheck]:
    """Yield verdicts that differ from the expected ones. On a good recording, a check may also skip."""
    for verdict in seen:
        if verdict.is_as_expected or (not verdict.expected.case and verdict.verdict == "skip"):
            continue
        came = f"{verdict.verdict}: {verdict.reason}" if verdict.verdict else verdict.reason
        if verdict.expected.case:
            want = f"must {verdict.expected.verdict} and say {verdict.expected.says!r}, but came to {came or 'nothing'}"
        else:
            want = f"must pass on the good recording ({verdict.expected.subject}), but came to {came or 'nothing'}"
        yield UnprovedCheck(verdict.expected.check, verdict.expected.case, want)


def _find_never_passing(
    chosen: Iterable[str], seen: Iterable[ObservedVerdict], unproved: Iterable[str]
) -> Iterator[UnprovedCheck]:
    """Yield the checks that pass on no good recording, without those that have another problem."""
    well = [verdict for verdict in seen if not verdict.expected.case]
    passed, other = {verdict.expected.check for verdict in well if verdict.verdict == "pass"}, set(unproved)
    other |= {verdict.expected.check for verdict in well if verdict.verdict not in ("pass", "skip")}
    for check in chosen:
        if check not in passed and check not in other:
            yield UnprovedCheck(check, "", "passes on no good recording: it skips, or there is nothing of its kind")
