"""Starts a node from assay's image, follows the start from stage to stage, and starts it anew as often as declared.

Each start is an attempt in the ledger. After a crash, the attempt that is under way is followed on: the machine is not
reset for the same attempt twice. A random number in the BMC's asset tag shows which machine is behind it. What the
machine reports are hints; only its own probe ends an attempt well.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from assay.act.actions.action import POLL_BACKOFF, ActionContext, EffectIntent
from assay.act.boot.attempts import (
    BOOT_KINDS,
    BootAttempt,
    fold_attempts,
    make_failed_entry,
    make_stage_entry,
    make_started_entry,
    name_attempt,
)
from assay.act.boot.image_store import IMAGES_FOLDER
from assay.act.remedies.boot import ASSET_TAG, BMC_S, PROBE_S, force_off_and_on
from assay.adapters.bmc.client import (
    BmcClient,
    describe_boot_progress,
    open_fleet_bmc,
    order_next_boot,
    write_asset_tag,
)
from assay.adapters.provisioner import Provisioner, make_texts
from assay.decide.rollouts.rollout_history import ROLLOUTS
from assay.declare.secret_lookup import read_secret
from assay.declare.stand_ins import refuse_spec
from assay.ledger.file_locks import hold_node_lock
from assay.ledger.ledger_reader import read_projection
from assay.model.entries.rollouts import CommitAdoptedEntry
from assay.model.errors import AssayError
from assay.model.evidence import read_at_path
from assay.model.node import Node
from assay.model.specs.image import ATTEMPT, IMAGE, Image, find_kernel_argument
from assay.model.specs.provisioning import BOOT_STAGES, OtherProvisioner, Provisioning
from assay.model.specs.technician_work import LOCAL_URL
from assay.observe.transports.transport import run_remote_probe


def choose_boot_image(context: ActionContext, node: str) -> Image | None:
    """Return the image for a start that is not for the image's own sake, None if none is declared.

    A node that restarts for another reason must not be ahead of the canary. While the declared image waits for a wave,
    or for the controller, the node boots the one that it ran when it was last read, if the fleet still declares that.
    """
    declared, running = context.fleet.image_of(node), _find_running_image(context, node)
    if declared is None or running is None or running.label == declared.label:
        return declared
    return running if _must_wait(context, node) else declared


def _find_running_image(context: ActionContext, node: str) -> Image | None:
    """Return the image of the fleet that the node ran when it was last read."""
    evidence = context.evidence.latest(node)
    command_line = evidence.read("probe", "host", "cmdline") if evidence else None
    label = find_kernel_argument(str(command_line.value), IMAGE) if command_line else ""
    return next((image for image in context.fleet.images.values() if image.label == label), None)


def _must_wait(context: ActionContext, node: str) -> bool:
    """Whether the node's turn has not come: its wave, or for the controller to bring the fleet to this commit."""
    history = read_projection(context.ledger, ROLLOUTS)
    rollout = history.find_active()
    if rollout and (member := rollout.members.get(node)):
        return not member.is_ordered_out and not member.proof
    commit = context.fleet.commit
    return bool(history.adopted and commit and CommitAdoptedEntry.read(history.adopted).commit != commit)


def give_number(context: ActionContext, node: str, bmc: BmcClient) -> str:
    """Give the BMC a new number, and return its SHA-256; "" where none is wanted, or where the BMC keeps none."""
    provisioning, number = context.fleet.provisioning_of(node), secrets.token_hex(16)
    if provisioning is None or "bmc-nonce" not in provisioning.proofs:
        return ""
    try:
        write_asset_tag(bmc, number)
    except AssayError as error:
        context.progress(f"{node}: no proof by its BMC: {error}")
        return ""
    return hashlib.sha256(number.encode()).hexdigest()


def restore_asset_tag(context: ActionContext, intent: EffectIntent) -> None:
    """Give the BMC the asset tag back that it had before the effect, if it could be read."""
    provisioning, tag = context.fleet.provisioning_of(intent.node), intent.before.get(ASSET_TAG)
    if tag is not None and provisioning is not None and "bmc-nonce" in provisioning.proofs:
        node = context.fleet.nodes[intent.node]
        with contextlib.suppress(AssayError), open_fleet_bmc(context.fleet, node, BMC_S) as bmc:
            write_asset_tag(bmc, str(tag))


DOCUMENT = "document"
"""Proves a stage: the probe's own reading of the node."""
POWER_S, LOCK_S = 300.0, 1800.0
GIB = 2**30


class RunningBoot(NamedTuple):
    """The boot that a node runs: its id, and the start and image that its kernel's command line names ("": none)."""

    boot_id: str
    attempt: str
    image: str


def read_running_boot(node: Node) -> RunningBoot:
    """Return what the node's probe reads now. Raises AssayError if the node does not answer."""
    document = run_remote_probe(node, ["--areas", "host"], PROBE_S)
    boot_id, command_line = (read_at_path(document, ("probe", "host", name)) for name in ("boot_id", "cmdline"))
    for reading in (boot_id, command_line):
        if reading.kind != "value":
            raise AssayError(f"the probe cannot tell which boot runs: {reading.reason}", where=node.name)
    words = str(command_line.value)
    return RunningBoot(str(boot_id.value), find_kernel_argument(words, ATTEMPT), find_kernel_argument(words, IMAGE))


def find_other_image(context: ActionContext, name: str) -> str:
    """Return what a node runs in place of its image, "" if it runs that, or if assay does not start it."""
    node, fleet = context.fleet.nodes[name], context.fleet
    if not node.image or not fleet.profile_of(name).host_settings or fleet.provisioning_of(name) is None:
        return ""
    seen = read_running_boot(node).image
    return "" if seen == node.image else f"runs {f'image {seen}' if seen else 'no image of assay'}, not {node.image}"


def list_own_attempts(context: ActionContext, intent: EffectIntent) -> list[BootAttempt]:
    """Return the starts of the node that this effect asked for, the oldest first."""
    attempts = fold_attempts(context.ledger.entries(intent.node, BOOT_KINDS)).values()
    return [attempt for attempt in attempts if attempt.effect == intent.effect]


def boot_declared_image(context: ActionContext, intent: EffectIntent) -> None:
    """Start a node from its image until its probe shows it. Leave a node alone that no Provisioning holds for."""
    provisioning, image = context.fleet.provisioning_of(intent.node), context.fleet.image_of(intent.node)
    if provisioning is None:
        return
    if image is None:
        spec = context.fleet.nodes[intent.node].spec
        fix = f"name one in `images` of Provisioning {provisioning.name}, or give the host a `boot_image`"
        raise AssayError(f"no image is declared for {spec}", where=intent.node, fix=fix)
    _refuse_stand_ins(context, provisioning, image)
    if not provisioning.other:
        _refuse_too_large(context, intent.node, image)
    with hold_node_lock(context.home, intent.node, LOCK_S):
        NetworkBoot(context, intent, provisioning, image).run()


def order_image_at_next_boot(context: ActionContext, intent: EffectIntent) -> None:
    """Let a node's next start be from its image, where one is declared and the profile allows it at every start.

    It gets a number by which it proves itself. If its BMC cannot do that, the machine's own boot order counts.
    """
    provisioning, image = context.fleet.provisioning_of(intent.node), choose_boot_image(context, intent.node)
    if (
        provisioning is None
        or provisioning.other
        or image is None
        or "network-starts" not in context.fleet.profile_of(intent.node).may
    ):
        return
    try:
        _refuse_stand_ins(context, provisioning, image)
        with open_fleet_bmc(context.fleet, context.fleet.nodes[intent.node], BMC_S) as bmc:
            order_next_boot(bmc, provisioning.boot_target)
            if not list_own_attempts(context, intent):
                _begin_attempt(context, intent, image, give_number(context, intent.node, bmc))
    except AssayError as error:
        context.progress(f"{intent.node}: the next start follows the machine's own boot order: {error}")


def _refuse_stand_ins(context: ActionContext, provisioning: Provisioning, image: Image) -> None:
    """Raise AssayError if a real machine would start from a server or an image that there is not."""
    for spec in (provisioning, image):
        refuse_spec(context.fleet, spec, "a start by network")


def _refuse_too_large(context: ActionContext, node: str, image: Image) -> None:
    """Raise AssayError for an image whose files, where they are here, are larger than the node's memory."""
    files = [context.home / IMAGES_FOLDER / artifact.sha256 for artifact in image.artifacts.values()]
    size, memory_gib = (
        sum(file.stat().st_size for file in files if file.is_file()),
        context.fleet.spec_of(node).memory_gib,
    )
    if memory_gib and size > memory_gib * GIB:
        message = f"Image {image.name} has {size / GIB:,.0f} GiB, and a stateless node holds it in {memory_gib} GiB"
        raise AssayError(message, where=node, fix="make the image smaller, or correct memory_gib of the node spec")


def _begin_attempt(context: ActionContext, intent: EffectIntent, image: Image, nonce_sha256: str) -> BootAttempt:
    """Record a start of an effect: the machine may ask from then on."""
    name, now = name_attempt(intent.node), context.clock.now()
    entry = make_started_entry(intent.node, name, image, now, effect=intent.effect, nonce_sha256=nonce_sha256)
    context.ledger.append(entry)
    return fold_attempts([entry])[name]


@dataclass(slots=True)
class NetworkBoot:
    """The starts of one node for one effect."""

    context: ActionContext
    intent: EffectIntent
    provisioning: Provisioning
    image: Image
    boot_before: str = ""

    def run(self) -> None:
        """Start the node until its probe shows an attempt of ours. Raises AssayError with the last failure."""
        self.boot_before = str(self.intent.before.get("boot_id", ""))
        own = list_own_attempts(self.context, self.intent)
        attempt = own[-1] if own and not own[-1].failure else None
        failed = [earlier for earlier in own if earlier.failure]
        while True:
            if attempt is None and len(failed) >= self.provisioning.attempts:
                raise _make_last_failure_error(failed)
            attempt = attempt or self._start()
            reason = self._follow(attempt)
            restore_asset_tag(self.context, self.intent)
            if not reason:
                return
            failed.append(self._fail(attempt, reason))
            attempt = None

    @property
    def _node(self) -> Node:
        return self.context.fleet.nodes[self.intent.node]

    def _start(self) -> BootAttempt:
        """Order the next boot, record the attempt, and cut the power; or order all of it from another tool."""
        node = self._node
        with contextlib.suppress(AssayError):
            self.boot_before = read_running_boot(node).boot_id
        if self.provisioning.other:
            return self._order(self.provisioning.other)
        with open_fleet_bmc(self.context.fleet, node) as bmc:
            order_next_boot(bmc, self.provisioning.boot_target)
            attempt = _begin_attempt(self.context, self.intent, self.image, give_number(self.context, node.name, bmc))
            self.context.progress(f"{node.name}: starts with image {self.image.name} ({self.image.version}) …")
            try:
                force_off_and_on(bmc, POWER_S)
            except AssayError as error:
                self._fail(attempt, f"its BMC did not restart it: {error}")
                raise
        return attempt

    def _order(self, other: OtherProvisioner) -> BootAttempt:
        """Record an attempt, and order it from another tool."""
        context, node = self.context, self._node
        attempt = _begin_attempt(context, self.intent, self.image, "")
        context.progress(f"{node.name}: {other.url} installs image {self.image.name} ({self.image.version}) …")
        try:
            if context.fleet.is_lab and not re.match(LOCAL_URL, other.url):
                raise AssayError("the lab reaches no provisioner of the site", where=other.url)
            secret = read_secret(other.credentials, context.fleet.root) if other.credentials else ""
            ends = time.monotonic() + 60 * self.provisioning.deadlines.agent
            Provisioner(other, make_texts(node, self.image), secret).install(ends)
        except AssayError as error:
            return self._fail(attempt, str(error))
        return attempt

    def _follow(self, attempt: BootAttempt) -> str:
        """Follow an attempt to its end. Return why it failed, "" once the node's probe shows it."""
        polls = 0
        while True:
            attempt = self._read(attempt)
            if attempt.failure:
                return attempt.failure
            if (seen := self._look(attempt)) is not None:
                return seen
            if reason := self._find_missed_stage(attempt):
                return reason
            polls += 1
            time.sleep(POLL_BACKOFF.wait_s(polls))

    def _look(self, attempt: BootAttempt) -> str | None:
        """Ask the node. None: it does not answer, or has not restarted yet. "": it runs this attempt."""
        try:
            running = read_running_boot(self._node)
        except AssayError:
            return None
        is_other_boot = bool(self.boot_before) and running.boot_id != self.boot_before
        is_installed = bool(self.provisioning.other) and is_other_boot and running.image == self.image.label
        if running.attempt == attempt.name or is_installed:
            now = self.context.clock.now()
            self.context.ledger.append(make_stage_entry(attempt, "agent", now, proven_by=DOCUMENT))
            return ""
        if not is_other_boot or self.provisioning.other:  # an installer may run meanwhile
            return None
        which = "an earlier start" if running.attempt else "no image of assay"
        return (
            f"it started something else: boot {running.boot_id[:8]} is of {which}. Its BMC ignored the order to start "
            f"from {self.provisioning.boot_target}, or another server answered"
        )

    def _find_missed_stage(self, attempt: BootAttempt) -> str:
        """Return which stage did not come in time, and what the BMC says; "" while all may still come."""
        reached = BOOT_STAGES.index(attempt.last_stage) + 1 if attempt.last_stage else 0
        stage = BOOT_STAGES[-1 if self.provisioning.other else min(reached, len(BOOT_STAGES) - 1)]
        minutes = self.provisioning.deadlines.find_minutes(stage)
        if self.context.clock.now() < attempt.started_at + timedelta(minutes=minutes):
            return ""
        try:
            with open_fleet_bmc(self.context.fleet, self._node, BMC_S) as bmc:
                progress = f"its BMC says: {describe_boot_progress(bmc)}"
        except AssayError as error:
            progress = f"its BMC does not answer: {error.what}"
        loop = f"; its script was fetched {attempt.fetches} times or more: it may boot in a loop"
        is_loop = attempt.fetches >= self.provisioning.most_fetches
        return f"no {stage} within {minutes:g} min; {progress}{loop if is_loop else ''}"

    def _read(self, attempt: BootAttempt) -> BootAttempt:
        entries = self.context.ledger.entries(attempt.node, BOOT_KINDS)
        return fold_attempts(entries)[attempt.name]

    def _fail(self, attempt: BootAttempt, reason: str) -> BootAttempt:
        """Record a failure, unless the boot server did, and return the attempt with it."""
        self.context.progress(f"{attempt.node}: the start failed after {attempt.last_stage or 'power-on'}: {reason}")
        self.context.ledger.append(make_failed_entry(self._read(attempt), reason, self.context.clock.now()))
        return self._read(attempt)


def _make_last_failure_error(failed: list[BootAttempt]) -> AssayError:
    last = failed[-1]
    count = f"{len(failed)} starts" if len(failed) > 1 else "its only start"
    message = f"{count} failed; the last one after {last.last_stage or 'the power-on'}: {last.failure}"
    fix = f"`assay history {last.node}` shows each; certify the node to start it again"
    return AssayError(message, where=last.node, fix=fix)
