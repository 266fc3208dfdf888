"""Follows the burn-ins of nodes: reads what they wrote, stores windows, judges them, lets them go on, and ends them.

What has been read is in the ledger, and nowhere else: a controller that is killed reads the same lines again. The ids
of entries follow from what they say, so a second one adds nothing. A node's GPUs vote on every run of the battery and
of training; those of a rack that is one machine, with all its trays, which are all read before any is judged. Those
whose phases are over wait for collectives, which a slot of the schedule runs; a later pass ends them by what these
found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby
from typing import Any

from assay.act.ingest.fault_recording import make_sighting_entries
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.schedules.due_slots import list_schedule_lines, make_new_nodes_lines
from assay.act.schedules.slot_runner import read_schedule_history
from assay.decide.faults.identity import find_identity_obstacle
from assay.decide.state.burn_in_record import BurnInRecord
from assay.decide.state.node_state import NodeState
from assay.model.decision import LOAD
from assay.model.entries.effects import (
    BurnInEndedEntry,
    BurnInEvent,
    BurnInHeldEntry,
    BurnInNoteEntry,
    BurnInOutcome,
    BurnInOverEntry,
    BurnInStartedEntry,
    BurnInWindowEntry,
    EffectIntentEntry,
)
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, is_same_serial
from assay.model.facts import frozen, to_json
from assay.model.faults.sightings import FaultSighting, shorten
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.reading import ReadingTree, value
from assay.model.specs.burn_in import RESTART_FAULT, BurnIn
from assay.model.timestamps import format_time, parse_time
from assay.observe.transports.transport import BurnInAnswer, TransportRegistry, ask_burn_in
from assay.observe.transports.transport_protocol import TransportContext
from assay.validate.active.burn_in_windows import (
    HOUR_S,
    BurnInVerdict,
    Line,
    cut_windows,
    find_burn_in,
    find_fruitless_part,
    find_invented_hours,
    find_missing_work,
    find_verdict,
    has_ended,
    list_expected_work,
    make_node_plan,
    make_plan_for,
)
from assay.validate.active.drift_against_neighbours import compute_gpu_rates, find_drifts, list_slow_gpus
from assay.validate.active.golden import BATTERY, NEIGHBOURS, NodeVotes, judge_beside_others, parse_other_nodes
from assay.validate.active.run_verdict import RunVerdict, describe_untold, judge_run
from assay.validate.active.unit_results import LoadRun, UnreadableRun, read_load_run
from assay.validate.collectives.fabric_map import find_nvlink_domains

VOTED_PARTS = frozenset({"battery", "training", "training_data_parallel", "training_tensor_parallel"})
"""The load parts whose results hold digests of each GPU."""
WRONG_FAULT, SUSPECT_FAULT = "gpu.sdc", "gpu.sdc.suspect"
"""The faults of checks that compare digests: the policy may ask the GPUs again."""


VotedRun = tuple[str, LoadRun]
"""A load part whose results are digests, and what it computed."""
Judge = Callable[[LoadRun], RunVerdict]


def list_voted_runs(lines: Iterable[Line]) -> list[VotedRun]:
    """Return the runs in lines that hold digests. One that cannot be read counts as a run without a result."""
    runs = list[VotedRun]()
    for line in lines:
        if line.get("unit") in VOTED_PARTS:
            with suppress(UnreadableRun):
                runs.append((line["unit"], read_load_run(line["result"])))
    return runs


def find_wrong_result(runs: Iterable[VotedRun], judge: Judge = judge_run) -> BurnInVerdict | None:
    """Return what is wrong: a guilty GPU, else what several can be guilty of; None for nothing."""
    suspect = None
    for part, run in runs:
        verdict, names = judge(run), {place: f"gpu{device.index}" for place, device in enumerate(run.devices)}
        for place, name in names.items():
            if wrong := verdict.find_wrong_units(place):
                words = f"{name}: {part} gave {len(wrong.units)} wrong units {wrong.describe(names)}"
                return BurnInVerdict(words, WRONG_FAULT, name)
        if verdict.suspicions and not suspect:
            suspect = BurnInVerdict(f"{part}: {describe_untold(list(verdict.suspicions))}", SUSPECT_FAULT)
    return suspect


ActiveTree = Mapping[str, Any]
"""The newest result of each load part, as the channel `active` holds it."""
MOST_READS = 64
LONG_UNREAD_H = 1.0
"""So many hours of load that nobody has read are told, or two windows if these are longer."""


@frozen
class RunningBurnIn:
    """A burn-in that loads a node: since when, and the newest results, {} for none, with what other nodes computed.

    How the node was before the load goes from document to document, whether there are results or not. In another boot,
    it is how the node was first seen there: a restart alone is no failure (`BurnIn.restarts`).
    """

    started_at: str
    results: ActiveTree
    others: ReadingTree = field(default_factory=dict)

    def add_to(self, evidence: EvidenceDocument, before: EvidenceDocument | None) -> EvidenceDocument:
        """Return the evidence with the results as its channel `active`, and how the node was before the load.

        `before`: the document before this one.
        """
        channels = {**evidence.channels, "active": self.results} if self.results else dict(evidence.channels)
        if before is None:
            return replace(evidence, channels=channels)
        source = "probe" if before.at < parse_time(self.started_at) and "probe" in before.channels else "before"
        if tree := before.channels.get(source):
            boots = [_read_boot(tree), _read_boot(evidence.channels.get("probe", {}))]
            channels["before"] = evidence.channels["probe"] if all(boots) and boots[0] != boots[1] else tree
        return replace(evidence, channels=channels)


def _list_gpus(serials: Mapping[str, str]) -> set[str]:
    return {serial for part, serial in serials.items() if part.startswith("gpu")}


def _read_boot(tree: Mapping[str, Any]) -> str:
    return str(tree.get("host", {}).get("boot_id", {}).get("value", ""))


def follow_burn_ins(fleet_state: FleetSnapshotCache, names: Collection[str]) -> dict[str, RunningBurnIn]:
    """Follow the burn-ins of the nodes `names`; return those that run, by node.

    A node that does not answer is left for the next time: what it does meanwhile, it writes down.
    """
    context, states = fleet_state.context, fleet_state.node_states()
    transports = TransportRegistry(TransportContext(context.evidence))
    running: dict[str, RunningBurnIn] = {}
    over: dict[str, BurnInOverEntry] = {}
    domains = find_nvlink_domains(context.fleet)
    known = sorted((name for name in names if name in states and name in context.fleet.nodes), key=_in_racks(domains))
    for _, rack in groupby(known, key=_in_racks(domains)):
        begun = [node_state for name in rack if (node_state := _begin(fleet_state, states[name]))]
        followers = [BurnInFollower(fleet_state, node_state, transports, states) for node_state in begun]
        votes = NodeVotes({each.node.name: [run for _, run in each.read()] for each in followers})
        for follower in followers:
            name, had_ended = follower.node.name, not follower.record.is_running
            results: ActiveTree = {}
            try:
                results = follower.follow(votes)
                over |= {name: follower.over} if follower.over else {}
            except AssayError as error:
                context.progress(f"{name}: {error.what}; its burn-in is read again later")
                if not follower.record.silent:
                    follower.note("silent", f"not read since {context.clock.now():%d %b %H:%M} UTC: {error.what}")
            if not had_ended or follower.record.must_stop:
                burn_in = follower.node_state.burn_in
                others = follower.describe_others() if BATTERY in results else {}
                running[name] = RunningBurnIn(burn_in.started_at if burn_in else "", results, others)
    at = context.now  # the same for all, so that one search has them together
    context.ledger.append(
        *(each.make_entry(derive_id(each.kind, name, each.burn_in), at, name) for name, each in over.items())
    )
    return running


def _in_racks(domains: Mapping[str, str]) -> Callable[[str], str]:
    """Return the order in which those of a rack that is one machine stand together."""
    return lambda name: domains.get(name, name)


def _begin(fleet_state: FleetSnapshotCache, node_state: NodeState) -> NodeState | None:
    """Return the node with a burn-in that has not ended, or whose load has not, else None. Note one that has begun."""
    context = fleet_state.context
    started = [effect for effect in node_state.effects if effect.action == "burn-in" and effect.standing == "verified"]
    effect = started[-1] if started and started[-1].at >= node_state.since else None
    if effect and (node_state.burn_in is None or node_state.burn_in.id != effect.id):
        spec = find_burn_in(context.fleet, node_state.node)
        begun = [BurnInStartedEntry(effect.id, spec.name if spec else "", spec.hours if spec else 0.0)]
        none = [] if spec else [BurnInEndedEntry(effect.id, "none", "no burn-in is for this node", 0.0)]
        for content in (*begun, *none):
            ident = derive_id(content.kind, node_state.node, effect.id)
            context.ledger.append(content.make_entry(ident, context.now, node_state.node))
        fleet_state.catch_up()
        node_state = fleet_state.node_states()[node_state.node]
    record = node_state.burn_in
    return node_state if record and (record.is_running or record.must_stop) else None


@dataclass
class BurnInFollower:
    """Follows one burn-in that has not ended."""

    fleet_state: FleetSnapshotCache
    node_state: NodeState
    transports: TransportRegistry
    states: Mapping[str, NodeState]

    def __post_init__(self) -> None:
        """Find the node."""
        self.context = self.fleet_state.context
        self.node = self.context.fleet.nodes[self.node_state.node]
        self.over: BurnInOverEntry | None = None
        """What is noted of one whose phases are over and that waits for collectives."""
        self._said: tuple[list[Line], BurnInAnswer] | AssayError | None = None
        self._runs: list[VotedRun] = []
        self._votes = NodeVotes({})

    @property
    def record(self) -> BurnInRecord:
        """What the ledger says now."""
        record = self.fleet_state.node_states()[self.node.name].burn_in
        if record is None:
            raise AssayError(f"{self.node.name} has no burn-in")
        return record

    @property
    def spec(self) -> BurnIn:
        """The spec. Raises AssayError if the fleet no longer has it."""
        spec = self.context.fleet.burn_ins.get(self.record.spec)
        if spec is None:
            raise AssayError(f"the burn-in {self.record.spec} is no longer in specs/", where=self.node.name)
        return spec.fit_to(self.context.fleet.parts_of(self.node.name))

    def read(self) -> list[VotedRun]:
        """Read what is new, unless nothing more comes; return the runs with digests. `follow` raises what failed."""
        try:
            if stranger := find_identity_obstacle(self.node_state, ["burn-in"]):
                raise AssayError(stranger, where=self.node.name)
            record = self.record  # one whose phases are over waits for nothing but collectives
            if not record.outcome and not (record.over_at and record.stay_id == self.node_state.stay_id):
                lines, answer = self._read_lines()
                self._said, self._runs = (lines, answer), list_voted_runs(lines)
        except AssayError as error:
            self._said = error
        return self._runs

    def _judge(self, run: LoadRun) -> RunVerdict:
        others = parse_other_nodes(self._votes.count_others(self.node.name, run))
        return judge_beside_others(run, self.context.fleet.list_golden(self.node.spec), others)[0]

    def describe_others(self) -> ReadingTree:
        """Return the readings of what the other nodes of its rack computed of its newest battery."""
        runs = [run for part, run in self._runs if part == BATTERY]
        return {NEIGHBOURS: value(self._votes.count_others(self.node.name, runs[-1]))} if runs else {}

    def follow(self, votes: NodeVotes | None = None) -> ActiveTree:
        """Judge what is new, and let it go on or end. Return the newest results. `votes`: of its whole rack."""
        if votes is None:
            self.read()
        self._votes = votes or self._votes
        if isinstance(self._said, AssayError):
            raise self._said
        record = self.record
        if record.outcome:
            latest = self.context.evidence.latest(self.node.name)
            if latest and "failed" in latest.channels.get("probe", {}):
                raise AssayError("it does not answer", where=self.node.name)
            self._stop_load()
            return {}
        if self._said is None:
            self._end_by_collectives(record)
            return {}
        return self._follow_lines(*self._said)

    def _follow_lines(self, lines: Sequence[Line], answer: BurnInAnswer) -> ActiveTree:
        record = self.record
        runs = [line["run"] for line in lines if "run" in line]
        machines = [str(run.get("machine", "")) for run in runs]
        if other := next((serial for serial in machines if not is_same_serial(serial, self.node.serial)), ""):
            self._stop("incomplete", f"these hours are of another machine, {other}: {self.node.serial} is declared")
            return {}
        known, new = (_list_gpus(record.serials), {gpu for run in runs for gpu in _list_gpus(run.get("serials", {}))})
        if known and new - known:
            self._stop("incomplete", f"a GPU was exchanged: {min(new - known)} has none of these hours")
            return {}
        windows = self._make_windows(lines, answer)
        verdict = find_wrong_result(self._runs, self._judge) or find_verdict(lines, record.known_hard_counters)
        if verdict:
            self._stop("failed", verdict.reason, verdict, windows=windows)
        elif invented := self._find_invented_hours(lines, answer):
            self._stop("incomplete", f"its hours are not believed: {invented}")
        elif record.stay_id != self.node_state.stay_id:
            self._stop("stopped", f"the node is in {self.node_state.state}", windows=windows)
        else:
            self._append(windows)
            self._note_return(record, answer)
            self._carry_on(record, lines, answer)
        return self._newest_results(lines, answer)

    def _carry_on(self, record: BurnInRecord, lines: Sequence[Line], answer: BurnInAnswer) -> None:
        """End it, or let it go on, as there is nothing against it. `record`: as it was before these lines."""
        if self.record.reboots > self.spec.restarts.most:
            words = f"the node restarted {self.record.reboots} times under its load"
            self._stop("failed", words, BurnInVerdict(words, RESTART_FAULT))
        elif fruitless := find_fruitless_part(record.work, lines):
            part, done = fruitless
            words = f"{part} gave no result in its first {done.units} runs: {done.reason}"
            mend = f"Mend it on the node, or take it out of the BurnIn {record.spec}"
            self._stop("incomplete", f"{words}. {mend}", part=part)
        elif has_ended(lines) and lines[-1]["end"] == "done" and not answer.running:
            self._judge_end(answer)
        elif (not answer.running or answer.id != record.id) and self._go_on():
            boots = [str(line["run"].get("boot", "")) for line in lines if "run" in line]
            is_same_boot = answer.boot == (boots[-1] if boots else record.boot)
            cause = "its supervisor had ended" if is_same_boot else "the node started again"
            lost = "" if answer.id == record.id else ", and the node had lost its plan"
            error = f" ({answer.error})" if answer.error else ""
            self._note_interruption(f"{cause}{error}{lost}; it went on after {self.record.hours_done:.1f} h")

    def _find_invented_hours(self, lines: Sequence[Line], answer: BurnInAnswer) -> str:
        """Return why the hours of lines cannot be true, by our clock since the order to begin, "" if they can."""
        record = self.record
        orders = self.context.ledger.entries(self.node.name, kinds=[EffectIntentEntry.kind])
        begun = [parse_time(entry.at) for entry in orders if EffectIntentEntry.read(entry).effect == record.id]
        most_s = (self.context.clock.now() - min(begun, default=parse_time(record.started_at))).total_seconds()
        return find_invented_hours(lines, record.boot, (answer.boot, answer.m), most_s)

    def _note_return(self, record: BurnInRecord, answer: BurnInAnswer) -> None:
        """Note that a node is read again, and what its supervisor says of itself while it works."""
        unread_h = answer.t / HOUR_S - record.hours_done
        if record.silent or unread_h > max(LONG_UNREAD_H, self.spec.record_minutes / 30):
            self._note_interruption(f"read again, with {unread_h:.1f} h of load that nobody had read; {record.silent}")
        if answer.running and answer.error and not any(answer.error in text for text in record.interruptions):
            self._note_interruption(answer.error)

    def _note_interruption(self, text: str) -> None:
        self.note("interrupted", f"{self.context.clock.now():%d %b %H:%M} UTC: {text.rstrip('; ')}")

    def note(self, event: BurnInEvent, text: str = "") -> None:
        """Note what happened, once for each state in which it can happen."""
        record = self.record
        content = BurnInNoteEntry(record.id, event, text)
        place = f"{record.log}:{record.line}:{len(record.interruptions)}:{text}"
        ident = derive_id(content.kind, self.node.name, record.id, event, "" if event == "stopped" else place)
        self._append([content.make_entry(ident, self.context.now, self.node.name)])

    def _make_entry(self, content: BurnInEndedEntry | BurnInHeldEntry) -> LedgerEntry:
        ident = derive_id(content.kind, self.node.name, content.burn_in)
        return content.make_entry(ident, self.context.now, self.node.name)

    def _append(self, entries: Sequence[LedgerEntry]) -> None:
        if entries:
            self.context.ledger.append(*entries)
            self.fleet_state.catch_up()

    def _read_lines(self) -> tuple[list[Line], BurnInAnswer]:
        """Return the lines that no window in the ledger has yet, and the last answer."""
        record, lines = self.record, list[Line]()
        log, line = record.log, record.line
        for _ in range(MOST_READS):
            answer = ask_burn_in(self.node, "read", self.transports, cursor=f"{log}:{line}")
            if answer.id != record.id:
                return [], answer
            lines += answer.lines
            if not answer.more or not answer.lines:
                break
            log, line = answer.log, answer.lines[-1]["n"]
        return lines, answer

    def _make_windows(self, lines: Sequence[Line], answer: BurnInAnswer) -> list[LedgerEntry]:
        """Return the entries of the windows that are over."""
        record, spec = self.record, self.spec
        serials, boot = dict[str, str](), record.boot
        for line in lines:
            if "run" in line:
                serials, boot = {**serials, **line["run"].get("serials", {})}, line["run"].get("boot", "")
        new = {name: serial for name, serial in serials.items() if record.serials.get(name) != serial}
        entries = []
        for cut in cut_windows(lines, spec.record_minutes * 60):
            content = BurnInWindowEntry(record.id, answer.log, cut.last_line, to_json(cut.window), boot, new)
            ident = derive_id(content.kind, self.node.name, record.id, answer.log, str(cut.last_line))
            entries.append(content.make_entry(ident, self.context.now, self.node.name))
            new = {}
        return entries

    def _go_on(self) -> bool:
        """Start the supervisor again: after a reboot, a kill, or on a node without the disk of the boot before.

        Return whether it works.
        """
        if self.context.fleet.is_watched(self.node.name, LOAD):
            return False
        record, spec = self.record, self.spec
        done_s, held = record.hours_done * HOUR_S, record.held_hours > 0
        plan = make_plan_for(self.context.fleet, self.node, spec, record.id, done_s=done_s, held=held)
        answer = ask_burn_in(self.node, "start", self.transports, plan=plan, cursor=f"{record.log}:{record.line}")
        self.context.progress(f"{self.node.name}: its burn-in goes on after {record.hours_done:.1f} h")
        return answer.running

    def _stop(
        self,
        outcome: BurnInOutcome,
        reason: str,
        verdict: BurnInVerdict | None = None,
        part: str = "",
        windows: Sequence[LedgerEntry] = (),
    ) -> None:
        """Note the end together with its fault and the last windows, and then stop the load: no kill loses any."""
        record = self.record
        hours = max([record.hours_done, *(float(BurnInWindowEntry.read(entry).window["hours"]) for entry in windows)])
        fault, at = verdict.fault if verdict else "", format_time(self.context.clock.now())
        end = BurnInEndedEntry(record.id, outcome, reason, round(hours, 3), fault=fault, part=part)
        with self.context.hold_fault_lock():
            seen = [FaultSighting(fault, verdict.part, at, shorten(reason), LOAD, at)] if verdict else []
            faults = [entry for each in seen for entry in make_sighting_entries(self.context, self.node.name, each)]
            self._append([*windows, *faults, self._make_entry(end)])
        self._stop_load()

    def _stop_load(self) -> None:
        """Stop the load, and note that the node says so. Raises AssayError if it does not: it is asked again."""
        record = self.record
        answer = ask_burn_in(self.node, "stop", self.transports, plan={"id": record.id})
        if answer.running and answer.id == record.id:
            raise AssayError(f"the load of {self.node.name} has not ended", where=self.node.name)
        self.note("stopped")

    def _judge_end(self, answer: BurnInAnswer) -> None:
        """All phases are over: note what is missing, hold a node that drifts, or note a good end."""
        record, spec = self.record, self.spec
        held = record.held_hours > 0
        if answer.phases < len(make_node_plan(spec, "", held=held)["phases"]):  # the node does not know yet
            self._go_on()
            return
        findings = find_drifts(spec, record.windows)
        rates = compute_gpu_rates(record.windows)
        drifts = [
            *(finding.format() for finding in findings),
            *list_slow_gpus(spec.drift, rates, self._list_other_rates()),
        ]
        hold = spec.drift.hold_longer_hours
        if missing := find_missing_work(spec, list_expected_work(spec, held=held), record.work, record.serials):
            more = f", and {len(missing) - 3} more" if len(missing) > 3 else ""
            self._end("incomplete", "; ".join(missing[:3]) + more, drifts, rates)
        elif hold and not held and any(finding.holds for finding in findings):
            self._append([self._make_entry(BurnInHeldEntry(record.id, hold, tuple(drifts)))])
            self._go_on()
        elif spec.collectives and self.node.settings.fabric:
            self.over = BurnInOverEntry(record.id, tuple(drifts), rates)
        else:
            self._end("done", "; ".join(drifts), drifts, rates)

    def _end_by_collectives(self, record: BurnInRecord) -> None:
        """End it by what the search with collectives of its fabric found; leave it while that has not ended."""
        lines = make_new_nodes_lines(list_schedule_lines(self.context.fleet))
        line, name = lines.get(self.node.settings.fabric or ""), self.node.name
        words, named, suspected = "collectives did not run: no schedule searches its fabric", {}, {}
        if line:
            search = read_schedule_history(self.context.ledger).get(line).find_search(record.id)
            if search is None:
                return
            words = search.reason if search.ended == "done" else f"collectives did not run: {search.reason}"
            named, suspected = (search.facts.get(key, {}) for key in ("named_nodes", "suspected_nodes"))
        if reason := named.get(name):
            self._end("failed", f"collectives named {reason}", record.drifts, record.rates)
        elif reason := suspected.get(name):
            reason = f"collectives could not tell whether it is good: {reason}"
            self._end("incomplete", reason, record.drifts, record.rates)
        else:
            self._end("done", "; ".join([*record.drifts, words]), record.drifts, record.rates)

    def _end(self, outcome: BurnInOutcome, reason: str, drifts: Sequence[str], rates: Mapping[str, float]) -> None:
        """Note the end of a burn-in whose phases are over."""
        record, hours = self.record, round(self.record.hours_done, 3)
        ended = BurnInEndedEntry(record.id, outcome, reason, hours, tuple(drifts), rates)
        self.context.ledger.append(self._make_entry(ended))

    def _list_other_rates(self) -> list[float]:
        """Return the Gflop/s of all GPUs of other nodes of the same spec, from their last burn-ins."""
        fleet = self.context.fleet
        return [
            rate
            for name, state in self.states.items()
            if name != self.node.name and name in fleet.nodes and fleet.nodes[name].spec == self.node.spec
            if state.burn_in and state.burn_in.outcome == "done"
            for rate in state.burn_in.rates.values()
        ]

    def _newest_results(self, lines: Sequence[Line], answer: BurnInAnswer) -> ActiveTree:
        """Return the newest result of each part in this boot, with the time at which it began."""
        start = next((i for i in reversed(range(len(lines))) if "run" in lines[i]), 0)
        same_boot = self.record.boot == answer.boot or any("run" in line for line in lines)
        newest = {line["unit"]: line for line in lines[start:] if "unit" in line} if same_boot else {}
        now, tree = self.context.clock.now(), dict[str, Any]()
        for part, line in newest.items():
            age_s = max(0.0, answer.m - line["m"]) + line["s"]
            begun = {"started_at": {"value": (now - timedelta(seconds=age_s)).isoformat()}}
            is_branch = "started_at" in line["result"]
            tree[part] = {**line["result"], **begun} if is_branch else line["result"]
        return tree
