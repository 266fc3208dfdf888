"""Answers a machine that asks what it boots: finds its node, finds or begins the start, and records how far it came.

The ledger decides, so any number of servers may answer. What a machine says here proves nothing: no answer holds a
secret.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from assay.act.boot.attempts import (
    BOOT_KINDS,
    BootAttempt,
    find_node_of,
    find_open_attempt,
    fold_attempts,
    make_stage_entry,
    make_started_entry,
    name_attempt,
)
from assay.act.boot.matching import read_sightings, record_sightings
from assay.act.boot.network_boot import choose_boot_image
from assay.act.boot.script import BootOrder
from assay.act.loop.context import ControllerContext
from assay.declare.stand_ins import refuse_spec
from assay.ledger.store import Ledger
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.image import Image
from assay.model.specs.machines import SeenMachine
from assay.model.specs.provisioning import BootStage, Provisioning
from assay.model.timestamps import parse_time

REPORTED_BY = "report"
DATA_LIFETIME = timedelta(days=1)
"""How long the data of a start is given out."""
LATELY, MOST_STRANGERS = timedelta(days=1), 500


@frozen
class BootingMachine:
    """What a machine's firmware says of itself: its MAC address in lower case, and its serial number."""

    mac: str
    serial: str


@frozen
class BootRefusal:
    """The machine must wait for `pause_s` seconds, and may ask once more. People at its console get the `reason`."""

    reason: str
    pause_s: float = 60.0


def answer_machine(context: ControllerContext, machine: BootingMachine) -> BootOrder | BootRefusal:
    """Return what a machine boots, and record that it asked; or why it must wait. Raises AssayError."""
    fleet = context.fleet
    node = find_booting_node(fleet, machine)
    if isinstance(node, str):
        _record_stranger(context.ledger, machine, context.clock.now())
        return BootRefusal(node)
    trust = fleet.find_trust(node.name, ["netboot"])
    if trust.step == "watch":
        return BootRefusal(f"assay only watches {node.name}: {trust}")
    provisioning, image = fleet.provisioning_of(node.name), choose_boot_image(context, node.name)
    if provisioning is None or provisioning.other or image is None or image.kernel is None:
        return BootRefusal(f"no image is declared for {node.name}")
    for spec in (provisioning, image):
        refuse_spec(fleet, spec, "a start by network")
    attempt = _take_attempt(context, node.name, provisioning, image)
    if isinstance(attempt, BootRefusal):
        return attempt
    image = fleet.images.get(attempt.image, image)
    words = tuple(fleet.spec_of(node.name).kernel_cmdline)
    return BootOrder(node.name, image, provisioning.url, attempt.name, words)


def _take_attempt(
    context: ControllerContext, node: str, provisioning: Provisioning, image: Image
) -> BootAttempt | BootRefusal:
    """Return the start that is under way, else one that nobody ordered: the machine started by itself.

    Each fetch is an entry, until there are too many: who fetches has proved nothing, and ends no start. What another
    server records meanwhile is read again.
    """
    ledger = context.ledger
    while True:
        now = context.clock.now()
        attempts = list(fold_attempts(ledger.entries(node, BOOT_KINDS)).values())
        attempt = find_open_attempt(attempts, provisioning, now)
        if attempt is None and context.fleet.find_trust(node, ["netboot"]).step == "suggest":
            return BootRefusal(f"nobody has said yes to a start of {node}")
        if attempt is None:
            newest = attempts[-1].name if attempts else ""
            ledger.append(make_started_entry(node, name_attempt(node), image, now, after=newest))
        else:
            fetch = make_stage_entry(attempt, "pxe", now, number=attempt.fetches + 1)
            if attempt.fetches >= provisioning.most_fetches or ledger.append(fetch) == [True]:
                return attempt


def _record_stranger(ledger: Ledger, machine: BootingMachine, now: datetime) -> None:
    """Record a machine that may not boot. Anybody can say anything here, so a day has only so many of them."""
    lately = (
        sighting
        for sighting in read_sightings(ledger, now)
        if sighting.machine.mac and now - parse_time(sighting.at) < LATELY
    )
    if sum(1 for _ in lately) < MOST_STRANGERS:
        seen = SeenMachine.parse({"serial": machine.serial, "mac": machine.mac})
        record_sightings(ledger, [seen], REPORTED_BY, now)


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
