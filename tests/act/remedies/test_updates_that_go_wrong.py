"""However an update goes wrong, it ends as done because the inventory proves it, or as a failure that says why."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.act.remedies.bmc_updates import FirmwareUpdateStatus
from assay.act.remedies.firmware_stages import FirmwareStage, list_stages
from assay.act.remedies.firmware_update import FirmwareUpdateRun, StageResult
from assay.model.errors import AssayError
from assay.model.specs.firmware_bundle import FirmwareComponent, FirmwareReset

IMAGE = b"an image"
RUNNING = FirmwareUpdateStatus("7", running=True, completed=False)
COMPLETED = FirmwareUpdateStatus("7", running=False, completed=True)


def component(name: str = "bios", **changes: Any) -> FirmwareComponent:
    plain = {"name": name, "version": "2", "inventory": [name.upper()], "push": "simple"}
    plain |= {"reset": "host", "order": 1} | changes
    return FirmwareComponent.model_validate(plain)


@dataclass
class PaperBmc:
    """A BMC on paper. `ends`: how a pushed update ends: written, failed, lost, or lost-but-written.

    `resets_needed`: by how many resets a version becomes active. `brings`: the version that an update of somebody else
    brings. `rolls_back_after`: for how many readings a new version stays. `starts_for`: for how many readings after a
    reset a part is not listed. `pending`: whether it lists what waits for a reset.
    """

    known: FirmwareUpdateStatus | None = None
    ends: str = "written"
    resets_needed: int = 1
    brings: str = "2"
    rolls_back_after: int = 10**6
    starts_for: int = 0
    pending: bool = True
    restarts: bool = False
    staged: str = ""
    running: str = "1"
    pushes: int = 0
    resets: list[str] = field(default_factory=list)
    missing: int = 0

    def read_versions(self) -> Mapping[str, str]:
        self.missing -= 1
        if self.running == "2":
            self.rolls_back_after -= 1
        if self.rolls_back_after < 0:
            self.running = "1"
        return {} if self.missing > 0 else {"BIOS": self.running}

    def read_pending_versions(self) -> Mapping[str, str]:
        return {"BIOS": self.staged} if self.staged and self.pending else {}

    def read_bmc_restart(self) -> str:
        return "later" if self.restarts and self.pushes else "long ago"

    def find_update(self, component: FirmwareComponent) -> FirmwareUpdateStatus | None:
        if self.known and self.known.completed and not self.known.reset_since:
            self.staged = self.staged or self.brings
        return self.known

    def read_update(self, ident: str) -> FirmwareUpdateStatus:
        ours = ident == "pushed"
        if not ours or "written" in self.ends:
            self.staged = "2" if ours else self.brings
        lost, failed = ours and "lost" in self.ends, ours and self.ends == "failed"
        message = "it does not know the task" if lost else "wrong signature" if failed else ""
        return FirmwareUpdateStatus(ident, running=False, completed=not (lost or failed), message=message, lost=lost)

    def push(self, component: FirmwareComponent, image: Path) -> str:
        self.pushes += 1
        return "pushed"

    def restart(self, what: FirmwareReset) -> None:
        self.resets.append(what)
        self.missing = self.starts_for
        self.resets_needed -= 1
        if self.resets_needed <= 0 and self.staged:
            self.running, self.staged = self.staged, ""


def work_on(bmc: PaperBmc, folder: Path, **options: Any) -> FirmwareUpdateRun:
    @contextmanager
    def connect() -> Iterator[PaperBmc]:
        yield bmc

    (folder / "image.bin").write_bytes(IMAGE)
    return FirmwareUpdateRun("n1", connect, lambda _: (folder / "image.bin", "not compared"), 10_000.0, **options)


def bring(work: FirmwareUpdateRun) -> StageResult:
    result = work.update_stage(FirmwareStage((component(),)))
    work.confirm([component()])
    return result


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that passes when somebody sleeps."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))


BROUGHT = {
    "all is well": (PaperBmc(), 1, 1),
    "equal already": (PaperBmc(running="2"), 0, 0),
    "padded with blanks": (PaperBmc(running="2 "), 0, 0),
    "a second reset": (PaperBmc(resets_needed=2), 1, 2),
    "a task that is lost, of an image that was written": (PaperBmc(ends="lost-but-written"), 1, 1),
    "the same, of a BMC that lists nothing that waits": (PaperBmc(ends="lost-but-written", pending=False), 1, 1),
    "an update that runs": (PaperBmc(known=RUNNING), 0, 1),
    "an update that waits for its reset": (PaperBmc(known=COMPLETED), 0, 1),
    "that, of a BMC that lists nothing that waits": (PaperBmc(known=COMPLETED, pending=False), 0, 1),
    "a version that waits, and no task": (PaperBmc(staged="2"), 0, 1),
    "another version that waits": (PaperBmc(staged="0"), 1, 1),
    "an update of somebody else with another version": (PaperBmc(known=RUNNING, brings="3"), 1, 3),
    "an update before a reset that changed nothing": (
        PaperBmc(known=FirmwareUpdateStatus("7", running=False, completed=True, reset_since=True)),
        1,
        1,
    ),
    "a part that starts slowly": (PaperBmc(starts_for=60), 1, 1),
}


@pytest.mark.parametrize("name", BROUGHT)
def test_it_is_done_when_the_inventory_proves_it(name: str, tmp_path: Path) -> None:
    bmc, pushes, resets = copy.deepcopy(BROUGHT[name])
    result = bring(work_on(bmc, tmp_path))
    assert result.after["BIOS"].strip() == "2"
    assert (bmc.pushes, len(bmc.resets)) == (pushes, resets)
    assert (result.changed, len(result.pushed), len(result.resets)) == (resets > 0, pushes, resets)


FAILED = {
    "never active": (PaperBmc(resets_needed=9), 2, "BIOS is 1, expected 2"),
    "failed": (PaperBmc(ends="failed"), 0, "the update of bios failed: wrong signature"),
    "a BMC that restarts in the middle": (
        PaperBmc(ends="failed", restarts=True),
        0,
        "wrong signature; the BMC restarted in the middle of it",
    ),
    "a task that is lost, of an image that was not written": (
        PaperBmc(ends="lost"),
        1,
        "nobody knows whether bios was written: it does not know the task. After the reset, BIOS is 1",
    ),
    "the same, after a restart of the BMC": (
        PaperBmc(ends="lost", restarts=True),
        1,
        "it does not know the task; the BMC restarted in the middle of it",
    ),
    "rolled back": (PaperBmc(rolls_back_after=2), 1, "BIOS read 2 after the update and reads 1 again: it rolled back"),
    "a part that never starts": (PaperBmc(starts_for=10**6), 1, "BIOS is absent, expected 2"),
}


@pytest.mark.parametrize("name", FAILED)
def test_it_fails_with_what_happened_and_the_image_is_pushed_once(name: str, tmp_path: Path) -> None:
    bmc, resets, why = copy.deepcopy(FAILED[name])
    work = work_on(bmc, tmp_path)
    with pytest.raises(AssayError) as failed:
        bring(work)
    assert why in str(failed.value)
    assert (bmc.pushes, len(bmc.resets)) == (1, resets)


BMCS = st.builds(
    PaperBmc,
    known=st.sampled_from(
        [None, RUNNING, COMPLETED, replace(COMPLETED, reset_since=True), replace(COMPLETED, completed=False)]
    ),
    ends=st.sampled_from(["written", "failed", "lost", "lost-but-written"]),
    resets_needed=st.integers(0, 5),
    brings=st.sampled_from(["2", "3"]),
    rolls_back_after=st.integers(0, 5) | st.just(10**6),
    starts_for=st.sampled_from([0, 3, 10**6]),
    pending=st.booleans(),
    restarts=st.booleans(),
    staged=st.sampled_from(["", "1", "2", "3"]),
    running=st.sampled_from(["1", "2", "3"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(BMCS)
def test_whatever_a_bmc_does_an_image_is_pushed_once_and_done_means_that_it_runs(tmp_path: Path, bmc: PaperBmc) -> None:
    work = work_on(bmc, tmp_path)
    with suppress(AssayError):
        result = bring(work)
        assert result.after["BIOS"] == "2"
        assert bmc.rolls_back_after >= 0
    assert bmc.pushes <= 1
    assert len(bmc.resets) <= 4
    assert set(work.pushed) == ({"bios"} if bmc.pushes else set())


def test_every_push_says_why(tmp_path: Path) -> None:
    failed = FirmwareUpdateStatus("7", running=False, completed=False, message="wrong signature")
    told: list[str] = []
    work = work_on(PaperBmc(known=failed), tmp_path, tell=told.append)
    result = work.update_stage(FirmwareStage((component(),)))
    assert result.pushed == {"bios": "BIOS is 1, expected 2, and the update 7 failed: wrong signature (not compared)"}
    assert told[1] == f"bios: pushes image.bin, because {result.pushed['bios']}"


def test_stages_are_the_orders_of_the_bundle_and_share_the_strongest_reset() -> None:
    parts = [component("c", order=9, reset="none"), component("a", order=1), component("b", order=9, reset="ac")]
    assert [(stage.name, stage.reset) for stage in list_stages(parts)] == [("a", "host"), ("c, b", "ac")]
