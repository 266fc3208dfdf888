"""Verifies idle nodes in production: loads them in their spare time, judges what came of it, and counts it.

A node that is in use is left to the next slot, one that makes room for a customer in the middle of it too: that is
neither pass nor fail. A node whose drain asks for it is loaded where it is, since nobody can be placed there, and is
given back after it passed; so is one that serves and has a cordon of ours all the same, as of a hook that saw something
pass by. What was loaded stays with the slot until it ended: whoever takes it up goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from shutil import rmtree
from typing import Any

from assay.actions.workloads import VERIFY_UNDRAIN, Standing, Workloads, named, ours, undrain_verified
from assay.controller.clock.schedule import Ended
from assay.controller.clock.spare import Loaded, load
from assay.controller.clock.timetable import Task
from assay.controller.clock.unverified import missed
from assay.controller.desk import Desk
from assay.controller.known.in_use import standings_of
from assay.controller.known.stories import stories_of
from assay.controller.lane import in_words
from assay.controller.looking.judgement import held_against, judged
from assay.lifecycle.story import Story
from assay.model.entry import Entry, derived_id
from assay.model.errors import Trouble
from assay.model.fleet import Node
from assay.model.outcome import Recorded
from assay.model.schedule import Verification
from assay.model.spans import counted, folded, listed
from assay.observe.fanout import Question, fan_out
from assay.observe.store import EvidenceStore

LOOK_S = 120.0
"""What a node's readings after its load, and the ways there, may take at most."""
WORDS = {
    "passed": "passed",
    "failed": "failed",
    "unjudged": "could not be judged",
    "yielded": "made room",
    "busy": "in use",
    "unknown": "could not be loaded",
    "skipped": "left out",
}
"""How it came out for a node, in the order in which it is told."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a verification came out for one node: a key of WORDS, and why."""

    node: str
    came: str
    why: str = ""


def verify_idle(desk: Desk, task: Task) -> Ended:
    """Verify the idle nodes of a pool. Raises Trouble where its scheduler cannot be asked at all."""
    how, began = task.line.schedule.verification, desk.clock.now()
    assert how is not None  # the model sees to it
    stories = stories_of(desk.ledger)
    nodes = [node for node in desk.fleet.pool(task.line.part) if _serves(desk, stories.get(node.name))]
    standings = standings_of(nodes, desk.workloads, desk.progress)
    left = [result for node in nodes if (result := _left_out(desk, stories[node.name], standings.get(node.name)))]
    chosen = [node for node in nodes if node.name not in {one.node for one in left}]
    results = [*left, *_verified(desk, task, how, chosen, standings)]
    passed = {one.node: standings[one.node].cordon for one in results if one.came == "passed"}
    closed = {name: cordon for name, cordon in passed.items() if cordon}
    desk.ledger.append(*_given_back(desk, task, closed, began))
    late = missed(desk, task, [stories[one.node] for one in results if one.came in ("busy", "yielded")])
    desk.ledger.append(*late)
    return Ended("done", _said(results, late), _facts(results))


def _serves(desk: Desk, story: Story | None) -> bool:
    return story is not None and story.state in desk.policy.states and desk.policy.states[story.state].in_service


def _left_out(desk: Desk, story: Story, standing: Standing | None) -> Result | None:
    """Return why a node is not verified now, None where it is."""
    if story.held:
        return Result(story.node, "skipped", f"held by {story.held.who}: {story.held.reason}")
    if not desk.fleet.profile_of(story.node).acts_on_faults:
        return Result(story.node, "skipped", f"profile {desk.fleet.nodes[story.node].profile}: faults are not acted on")
    if story.pending or story.in_flight:
        return Result(story.node, "skipped", "about to leave, or something that was begun there is not over")
    if standing is None:
        return Result(story.node, "unknown", "its scheduler cannot tell whether it is in use")
    if standing.jobs:
        return Result(story.node, "busy", named(standing.jobs))
    if standing.cordon and not (VERIFY_UNDRAIN in standing.cordon or ours(standing.cordon)):
        return Result(story.node, "skipped", f"cordoned: {standing.cordon}")
    return None


def _verified(
    desk: Desk, task: Task, how: Verification, nodes: Sequence[Node], standings: Mapping[str, Standing]
) -> list[Result]:
    """Load nodes, so many at a time, and judge them."""
    folder = desk.home / "verification" / f"{task.line.name}.{task.line.part}"
    store = EvidenceStore(folder / task.id)
    for other in folder.glob("*") if task.attempt == 1 else ():
        rmtree(other)
    loaded = list(_loaded_all(desk, how, nodes, standings, store))
    names = [one.node for one in loaded if one.came == "loaded"]
    outcomes = _outcomes(desk, how, names, store) if names else []
    rmtree(folder, ignore_errors=True)
    not_loaded = [Result(one.node, one.came, one.why) for one in loaded if one.came != "loaded"]
    return not_loaded + [_came_out(name, outcomes) for name in names]


def _loaded_all(
    desk: Desk, how: Verification, nodes: Sequence[Node], standings: Mapping[str, Standing], store: EvidenceStore
) -> Iterator[Loaded]:
    """Load nodes, so many at a time; one that comes to no end is left behind, and holds nobody else."""
    limit_s = how.within_minutes * 60 + LOOK_S
    questions = [
        Question((node.name, "load"), partial(_loaded, desk, node, how, standings[node.name], store), limit_s)
        for node in nodes
    ]
    for question, answer in fan_out(questions, how.at_once, math.inf):
        name = question.key[0]
        yield Loaded(name, "unknown", in_words(answer)) if isinstance(answer, Exception) else answer


def _loaded(desk: Desk, node: Node, how: Verification, standing: Standing, store: EvidenceStore) -> Loaded:
    if store.latest(node.name):
        return Loaded(node.name, "loaded")
    desk.progress(f"{node.name}: loading it with {', '.join(how.parts)} …")
    return load(desk, node, how, standing, store)


def _outcomes(desk: Desk, how: Verification, names: Sequence[str], store: EvidenceStore) -> list[Recorded]:
    """Judge what was loaded, and let what came of it count."""
    result = judged(desk, names, how.phase, store.folder / "latest")
    outcomes = [Recorded(result.run.id, result.run.at, one) for one in result.stored.outcomes(nodes=names)]
    held_against(desk, outcomes)
    return outcomes


def _came_out(name: str, outcomes: Iterable[Recorded]) -> Result:
    own = [one.outcome for one in outcomes if one.outcome.node == name]
    against = [one for one in own if one.decides]
    for verdict, came in (("fail", "failed"), ("error", "unjudged")):
        if first := next((one for one in against if one.verdict == verdict), None):
            return Result(name, came, f"{first.check.rpartition('::')[2]}: {first.reason}")
    if any(one.verdict == "pass" and one.active for one in own):
        return Result(name, "passed")
    return Result(name, "unjudged", "no check that loads the node passed")


def _given_back(desk: Desk, task: Task, closed: Mapping[str, str], began: datetime) -> Iterator[Entry]:
    """Undo drains that a passed verification ends, look whether they are gone, and say so.

    `closed` are the nodes with their cordons. One that has been decided about meanwhile stays as it is.
    """
    stories = stories_of(desk.ledger) if closed else {}
    for name, cordon in closed.items():
        story = stories[name]
        decided = not _serves(desk, story) or story.pending or story.held or story.in_flight
        if decided or "uncordon" not in desk.fleet.profile_of(name).actions:
            continue
        scheduler = desk.workloads(desk.fleet.nodes[name])
        try:
            reason = _undone(scheduler, name, cordon, began)
            stands = scheduler.cordoned(name) if reason else ""
        except Trouble as trouble:
            desk.progress(f"{name}: cannot be given back: {trouble}")
            continue
        if reason and not stands:
            body = {"schedule": task.line.name, "slot": task.slot.isoformat(), "reason": reason}
            yield Entry(derived_id(task.id, "undrained", name), desk.now, "node.undrained", name, body)


def _undone(scheduler: Workloads, name: str, cordon: str, began: datetime) -> str:
    """Undo what a passed verification ends; return its reason, "" where it asks for more."""
    if VERIFY_UNDRAIN in cordon or not ours(cordon):
        return undrain_verified(scheduler, name, began)
    scheduler.uncordon(name)
    return cordon


def _facts(results: Iterable[Result]) -> dict[str, Any]:
    """Return the results for history: names where that is all, else names by reason, both folded."""
    facts: dict[str, Any] = {}
    for came in WORDS:
        by_reason: dict[str, list[str]] = {}
        for one in _those(results, came):
            by_reason.setdefault(one.why, []).append(one.node)
        if by_reason:
            facts[came] = {why: folded(names) for why, names in by_reason.items()}
    return facts


def _said(results: Sequence[Result], late: Sequence[Entry]) -> str:
    parts = [f"{len(own)} {word} ({_who(own)})" for came, word in WORDS.items() if (own := _those(results, came))]
    told = [f"{counted(len(late), 'node')} not verified for too long"] if late else []
    return ", ".join([*parts, *told]) or "no node of the pool serves"


def _those(results: Iterable[Result], came: str) -> list[Result]:
    return [one for one in results if one.came == came]


def _who(results: Sequence[Result]) -> str:
    """Return the nodes, and the reason where they have it in common."""
    names, reasons = listed(folded(one.node for one in results), 4), {one.why for one in results}
    why = reasons.pop() if len(reasons) == 1 else ""
    return f"{names}: {why}" if why else names
