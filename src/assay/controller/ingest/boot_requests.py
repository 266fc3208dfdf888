"""Answers a machine that asks what it boots: finds its node, finds or begins the start, and records how far it came.

The ledger decides, so any number of servers may answer. What a machine says here proves nothing: no answer holds a
secret.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.controller.context import ControllerContext
from assay.controller.ingest.machine_sightings import record_sightings
from assay.model.backoff import Backoff
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.provisioning.provisioning_spec import BootStage, Provisioning
from assay.model.provisioning.seen_machine import SeenMachine
from assay.provisioning.boot_attempts import (
    BOOT_KINDS,
    BootAttempt,
    find_newest_attempt,
    find_node_of,
    fold_attempts,
    make_failed_entry,
    make_stage_entry,
    make_started_entry,
    name_attempt,
)
from assay.provisioning.boot_script import BootOrder

REPORTED_BY = "report"
DATA_LIFETIME = timedelta(days=1)
"""How long the data of a start is given out."""
PAUSES = Backoff((60.0,), factor=2.0, longest_s=3600.0)
"""How long a machine waits that must not start now, the longer the more often it looped."""


@dataclass(frozen=True, slots=True)
class BootingMachine:
    """What a machine's firmware says of itself: its MAC address in lower case, and its serial number."""

    mac: str
    serial: str


@dataclass(frozen=True, slots=True)
class BootRefusal:
    """The machine must wait for `pause_s` seconds, and may ask once more then. `why` is for people at its console."""

    why: str
    pause_s: float = 60.0


@dataclass(slots=True)
class BootRequests:
    """What one server knows of the machines that ask it. How often each has asked is known to this process alone."""

    _fetches: Counter[str] = field(default_factory=Counter)
    _loops: Counter[str] = field(default_factory=Counter)
    _waits_until: dict[str, datetime] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, context: ControllerContext, machine: BootingMachine) -> BootOrder | BootRefusal:
        """Return what a machine boots, and record that it asked; or why it must wait."""
        fleet, now = context.fleet, context.clock.now()
        node = find_booting_node(fleet, machine)
        if isinstance(node, str):
            seen = SeenMachine.parse({"serial": machine.serial, "model": f"asked to boot from {machine.mac}"})
            record_sightings(context.ledger, [seen] if seen.serial else [], REPORTED_BY, now)
            return BootRefusal(node)
        provisioning, image = fleet.provisioning_of(node.name), fleet.image_of(node.name)
        if provisioning is None or image is None:
            return BootRefusal(f"no image is declared for {node.name}")
        with self._lock:
            attempt = self._find_or_begin(context, node, provisioning, now)
            if isinstance(attempt, BootRefusal):
                return attempt
            self._fetches[attempt.name] += 1
            if self._fetches[attempt.name] > provisioning.most_fetches:
                return self._end_loop(context, attempt, now)
        context.ledger.append(make_stage_entry(attempt, "pxe", now))
        words = tuple(fleet.spec_of(node.name).kernel_cmdline)
        return BootOrder(node.name, image, provisioning.url, attempt.name, words)

    def _find_or_begin(
        self, context: ControllerContext, node: Node, provisioning: Provisioning, now: datetime
    ) -> BootAttempt | BootRefusal:
        """Return the start that is under way; else one that nobody ordered: the machine started by itself."""
        newest = find_newest_attempt(context.ledger.entries(node.name, BOOT_KINDS))
        if newest and is_open(newest, provisioning, now):
            return newest
        if (until := self._waits_until.get(node.name, now)) > now:
            return BootRefusal(f"{node.name} boots in a loop; it waits", (until - now).total_seconds())
        image = context.fleet.image_of(node.name)
        assert image is not None, "the caller has it"
        started = make_started_entry(node.name, name_attempt(node.name), image, now)
        context.ledger.append(started)
        return next(iter(fold_attempts([started]).values()))

    def _end_loop(self, context: ControllerContext, attempt: BootAttempt, now: datetime) -> BootRefusal:
        count, minutes = self._fetches[attempt.name], (now - attempt.started_at).total_seconds() / 60
        reason = f"boots in a loop: it fetched its script {count} times in {minutes:.0f} min"
        context.ledger.append(make_failed_entry(attempt, reason, now))
        self._loops[attempt.node] += 1
        pause_s = PAUSES.wait_s(self._loops[attempt.node])
        self._waits_until[attempt.node] = now + timedelta(seconds=pause_s)
        return BootRefusal(f"{attempt.node} {reason}", pause_s)


def find_booting_node(fleet: Fleet, machine: BootingMachine) -> Node | str:
    """Return the node with this MAC address and serial number, or why there is none.

    A machine that shows no serial number is believed by its MAC address: the answer holds no secret.
    """
    name = fleet.boot_macs.get(machine.mac)
    if name is None:
        return f"no node has the MAC address {machine.mac or '(none)'}"
    node = fleet.nodes[name]
    if machine.serial and machine.serial != node.serial:
        return f"{name} has this MAC address, and another serial number than {machine.serial}"
    return node


def is_open(attempt: BootAttempt, provisioning: Provisioning, now: datetime) -> bool:
    """Whether a start is still under way."""
    age = now - attempt.started_at
    return not attempt.failure and attempt.last_stage != "agent" and age < _limit_age(provisioning)


def find_attempt(context: ControllerContext, name: str) -> BootAttempt | None:
    """Return the start with this name, if its node is in the inventory and its data may still be given out."""
    node = find_node_of(name)
    if node not in context.fleet.nodes:
        return None
    attempt = fold_attempts(context.ledger.entries(node, BOOT_KINDS)).get(name)
    return attempt if attempt and context.clock.now() - attempt.started_at < DATA_LIFETIME else None


def record_stage(
    context: ControllerContext, attempt: BootAttempt, stage: BootStage, proven_by: str = "", words: str = ""
) -> None:
    """Record that a start reached a stage; once for each stage and proof."""
    entry = make_stage_entry(attempt, stage, context.clock.now(), proven_by=proven_by, words=words)
    context.ledger.append(entry)


def _limit_age(provisioning: Provisioning) -> timedelta:
    return timedelta(minutes=provisioning.deadlines.agent)
