"""Collects the evidence of many nodes at once: every channel of every node, each with a deadline of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from assay.model.clock import Clock
from assay.model.errors import Trouble
from assay.model.evidence import Evidence
from assay.model.fleet import Fleet, Node
from assay.model.reading import absent, as_reading, failed
from assay.observe.bmc import open_bmc
from assay.observe.fanout import WORKERS, Question, fan_out
from assay.observe.reach import probe

ACTIVE_DEADLINE_S = 600.0


def collect(
    fleet: Fleet,
    names: Sequence[str],
    *,
    clock: Clock,
    since: Mapping[str, int | str] | None = None,
    active: Mapping[str, Collection[str]] | None = None,
    deadline_s: float = 10,
    active_deadline_s: float = ACTIVE_DEADLINE_S,
    progress: Callable[[str], None] | None = None,
    workers: int = WORKERS,
) -> dict[str, Evidence]:
    """Return the evidence of each named node, in the order of `names`; a dead or hung channel reads failed.

    `since` is a cursor into a node's kernel log, `SEQ@BOOT_ID` (or SEQ, for the boot that runs). `active` names the
    active parts to run per node, within `active_deadline_s`; on such a node the probe reads again when they are
    over, so that it sees what they brought about. `progress` is told each node when its last channel is in.
    Deadlines are real seconds; times are of `clock`. Raises Trouble only for names that the fleet does not have.
    """
    unknown = [name for name in names if name not in fleet.nodes]
    if unknown:
        raise Trouble(f"the inventory has no node {', '.join(unknown)}", where=str(fleet.root / "inventory"))
    since, active = since or {}, active or {}
    questions = [
        question
        for name in names
        for question in _questions(fleet, fleet.nodes[name], since, active, (deadline_s, active_deadline_s), clock.now)
    ]
    started = {name: clock.now() for name in names}
    return _gather(names, questions, workers, started, progress)


def _questions(
    fleet: Fleet,
    node: Node,
    since: Mapping[str, int | str],
    active: Mapping[str, Collection[str]],
    limits_s: tuple[float, float],
    now: Callable[[], datetime],
) -> Iterator[Question]:
    deadline_s, active_deadline_s = limits_s
    passive = ["--since", str(since[node.name])] if node.name in since else []
    parts = ",".join(sorted(active.get(node.name, ())))

    def probe_after_active() -> dict[str, Any]:
        made = probe(node, ["--active", parts, "--at", now().isoformat()], active_deadline_s)
        return made | probe(node, passive, deadline_s)

    yield Question((node.name, "bmc"), lambda: {"bmc": read_bmc(node, fleet.root, deadline_s)}, deadline_s)
    if parts:
        yield Question((node.name, "probe"), probe_after_active, active_deadline_s + deadline_s)
    else:
        yield Question((node.name, "probe"), lambda: probe(node, passive, deadline_s), deadline_s)


def read_bmc(node: Node, root: Path, deadline_s: float) -> dict[str, Any]:
    """Return the tree of a node's BMC; one leaf where it has none, or where nothing at all was answered."""
    if not node.variables.get("bmc_address"):
        return absent(f"no bmc_address is declared for {node.name}")
    try:
        with open_bmc(node, root=root, deadline_s=deadline_s) as bmc:
            tree = bmc.read(deadline_s)
    except Trouble as trouble:
        return failed(trouble.what)
    branches = [as_reading(branch) for branch in tree.values()]
    reasons = {branch.reason for branch in branches if branch is not None and branch.kind == "failed"}
    if len(reasons) == 1 and all(branch is not None and branch.kind == "failed" for branch in branches):
        return failed(reasons.pop())
    return tree


def _gather(
    names: Sequence[str],
    questions: Sequence[Question],
    workers: int,
    started: Mapping[str, datetime],
    progress: Callable[[str], None] | None,
) -> dict[str, Evidence]:
    channels: dict[str, dict[str, Any]] = {name: {} for name in names}
    left = {name: sum(question.key[0] == name for question in questions) for name in names}
    for question, answer in fan_out(questions, workers):
        name, channel = question.key
        channels[name] |= {channel: failed(_reason(answer))} if isinstance(answer, BaseException) else answer
        left[name] -= 1
        if progress is not None and not left[name]:
            progress(name)
    return {name: Evidence(name, started[name], channels[name]) for name in names}


def _reason(error: BaseException) -> str:
    """Return a reason for what should not have been raised, without what the exception may quote."""
    return str(error) if isinstance(error, TimeoutError) else f"the collector broke: {type(error).__name__}"
