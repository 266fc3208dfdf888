"""Until its wave comes, a node that restarts for another reason boots the image that it ran."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.actions.action import ActionContext
from assay.act.boot.boot_requests import BootingMachine, answer_machine
from assay.act.boot.network_boot import _refuse_too_large, choose_boot_image
from assay.act.boot.script import BootOrder
from assay.act.loop.context import ControllerContext
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.node_entries import MoveEntry
from assay.model.entries.rollouts import (
    CommitAdoptedEntry,
    NodeProvenEntry,
    RolloutFinishedEntry,
    RolloutGroup,
    RolloutStartedEntry,
)
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.reading import value
from assay.model.specs.image import Image
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

NODE, OTHER = "n0001", "n0002"
BEFORE, AFTER = "a" * 40, "b" * 40
DECLARED = replace(load_fleet(ROOT), is_lab=True)
STARTED = RolloutStartedEntry("r1", BEFORE, AFTER, (RolloutGroup("production-reboot", "image", BEFORE, (NODE,)),))
ADOPTED = CommitAdoptedEntry(AFTER, BEFORE)


class Site:
    """A fleet of which n0001 ran the older of two images when it was last read."""

    def __init__(self, home: Path) -> None:
        self.new = DECLARED.image_of(NODE)
        assert self.new is not None
        self.old = self.new.model_copy(update={"name": "gpu-node-old", "version": "2026.09"})
        self.context = ControllerContext(
            self._with_images(self.new, self.old),
            Ledger.open(home / "ledger.sqlite"),
            EvidenceStore(home / "evidence"),
            SystemClock(),
            home,
            home / "reports",
        )
        self.read(self.old)

    def _with_images(self, *images: Image) -> Fleet:
        node = replace(DECLARED.nodes[NODE], mac="02:00:00:00:00:01")
        nodes = {**DECLARED.nodes, NODE: node}
        return replace(DECLARED, commit=AFTER, images={image.name: image for image in images}, nodes=nodes)

    def forget_old_image(self) -> ActionContext:
        assert self.new is not None
        return replace(self.context, fleet=self._with_images(self.new))

    def read(self, image: Image) -> None:
        cmdline = value(f"console=ttyS0 assay.image={image.label}")
        seen = EvidenceDocument(NODE, self.context.clock.now(), {"probe": {"host": {"cmdline": cmdline}}})
        self.context.evidence.store_latest(seen)

    def say(self, content: EntryContent, node: str = "") -> None:
        number = self.context.ledger.head()
        self.context.ledger.append(content.make_entry(f"e{number}", format_time(self.context.clock.now()), node))

    def chosen(self, context: ActionContext | None = None) -> str:
        image = choose_boot_image(context or self.context, NODE)
        assert image is not None
        return image.name


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_without_a_rollout_it_is_the_declared_one(site: Site) -> None:
    assert site.chosen() == "gpu-node-2026.10"
    site.say(ADOPTED)
    assert site.chosen() == "gpu-node-2026.10"


def test_a_node_that_waits_for_its_wave_keeps_its_image(site: Site) -> None:
    site.say(ADOPTED)
    site.say(STARTED)
    assert site.chosen() == "gpu-node-old"


def test_a_node_whose_wave_has_come_gets_the_new_one(site: Site) -> None:
    site.say(ADOPTED)
    site.say(STARTED)
    site.say(MoveEntry("production-reboot", "assay", "its wave", rollout="r1"), NODE)
    assert site.chosen() == "gpu-node-2026.10"


@pytest.mark.parametrize(
    "end", [NodeProvenEntry("r1", "it ran the new image already"), RolloutFinishedEntry("r1", "all proven")]
)
def test_a_node_that_needs_no_wave_any_more_gets_the_new_one(site: Site, end: EntryContent) -> None:
    site.say(ADOPTED)
    site.say(STARTED)
    site.say(end, NODE if end.kind == NodeProvenEntry.kind else "")
    assert site.chosen() == "gpu-node-2026.10"


def test_before_the_controller_has_taken_over_the_commit_nothing_changes(site: Site) -> None:
    site.say(CommitAdoptedEntry(BEFORE))
    assert site.chosen() == "gpu-node-old"


def test_an_image_that_the_fleet_no_longer_declares_cannot_be_kept(site: Site) -> None:
    site.say(STARTED)
    assert site.chosen(site.forget_old_image()) == "gpu-node-2026.10"


def test_the_boot_server_gives_the_image_that_was_chosen_for_the_start(site: Site) -> None:
    site.say(ADOPTED)
    site.say(STARTED)
    machine = BootingMachine("02:00:00:00:00:01", DECLARED.nodes[NODE].serial)
    order = answer_machine(site.context, machine)
    assert isinstance(order, BootOrder)
    assert order.image == site.old
    site.say(MoveEntry("production-reboot", "assay", "its wave", rollout="r1"), NODE)
    once_more = answer_machine(site.context, machine)
    assert isinstance(once_more, BootOrder)
    assert (once_more.attempt, once_more.image) == (order.attempt, site.old), "a start keeps its image"


@pytest.mark.parametrize(("gib", "is_refused"), [(2049, True), (2000, False)])
def test_an_image_larger_than_the_nodes_memory_is_refused_before_the_power_is_cut(
    tmp_path: Path, gib: int, is_refused: bool
) -> None:
    site = Site(tmp_path)
    assert site.new is not None
    assert site.context.fleet.spec_of(NODE).memory_gib == 2048
    (tmp_path / "images").mkdir()
    with (tmp_path / "images" / site.new.artifacts["kernel"].sha256).open("wb") as file:
        file.truncate(gib * 2**30)
    with (
        pytest.raises(AssayError, match="2,049 GiB, and a stateless node holds it in 2048 GiB")
        if is_refused
        else nullcontext()
    ):
        _refuse_too_large(site.context, NODE, site.new)
