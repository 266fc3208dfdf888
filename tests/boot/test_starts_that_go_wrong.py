"""Starts that end badly: each is told with its last stage, and nothing that a machine says is believed for it."""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from boot_room import PATIENCE_S, BootRoom, open_boot_room

from assay.actions import netboot
from assay.lab.faults.injection import inject_fault
from assay.model.errors import AssayError

HASTY = {
    "pxe": 12,
    "kernel": 14,
    "cloud_init": 16,
    "agent": 18,
    "source": "a test: nothing comes",
}


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootRoom]:
    """A site that gives up soon: its machines never come."""
    with open_boot_room(tmp_path_factory.mktemp("hasty"), deadlines=HASTY, attempts=1) as room:
        yield room


def fail(boot: BootRoom, node: str) -> str:
    """Let a start fail, and return what is told."""
    intent = boot.begin(node)
    with pytest.raises(AssayError) as told:
        netboot.run(boot.room.context(), intent)
    assert netboot.verify(boot.room.context(), intent).done is False
    assert boot.attempts(node)[-1].failure
    return str(told.value)


def test_a_bmc_that_ignores_the_order_starts_something_else(boot: BootRoom) -> None:
    boot.plug_in("n0004")
    inject_fault(boot.room.world, "boot.from-disk", "n0004", {})
    told = fail(boot, "n0004")
    assert "started something else" in told
    assert "no image of assay" in told
    assert len(boot.attempts("n0004")) == 3, "as often as the Provisioning allows"


def test_a_machine_whose_dhcp_answer_is_anothers_is_told_by_the_stage_that_it_never_reached(hasty: BootRoom) -> None:
    hasty.plug_in("n0001")
    hasty.room.change("n0001", lambda state: state.update(boot_server="http://127.0.0.1:9"))
    told = fail(hasty, "n0001")
    assert "after the power-on" in told
    assert "no pxe within 12 min; its BMC says: power On" in told


def test_a_machine_that_hangs_after_its_kernel_is_told_with_its_last_stage(hasty: BootRoom) -> None:
    hasty.plug_in("n0002")
    inject_fault(hasty.room.world, "boot.hangs", "n0002", {})
    told = fail(hasty, "n0002")
    assert "the last one after pxe: no kernel within 14 min" in told


def test_a_machine_that_is_switched_off_in_the_middle_does_not_count_as_started(hasty: BootRoom) -> None:
    hasty.plug_in("n0003")
    inject_fault(hasty.room.world, "boot.hangs", "n0003", {})
    intent = hasty.begin("n0003")
    hasty.room.change("n0003", lambda state: state["timing"].update(power_on_s=100_000))
    with pytest.raises(AssayError, match="no pxe within 12 min"):
        netboot.run(hasty.room.context(), intent)
    hasty.room.change("n0003", lambda state: state["power"].update(state="Off"))
    assert netboot.verify(hasty.room.context(), intent).done is False


def test_another_machine_in_its_place_gets_no_image(boot: BootRoom) -> None:
    boot.plug_in("n0005")
    script = boot.server.ask("script?mac=02:00:00:00:00:05&serial=SOMEBODY-ELSE").decode()
    assert "kernel" not in script
    assert "n0005 has this MAC address, and another serial number than SOMEBODY-ELSE" in script
    assert not boot.attempts("n0005")


def test_a_file_with_another_digest_is_given_to_nobody_and_told(boot: BootRoom) -> None:
    kernel = boot.room.fleet.images["gpu-node-2026.10"].kernel
    served = boot.room.root / "served" / "vmlinuz"
    good = served.read_bytes()
    for stored in (boot.room.root / ".assay" / "images").glob("*"):
        stored.unlink()
    served.write_bytes(b"something else")
    try:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            boot.server.ask(f"images/{kernel.sha256}/kernel")
        wait_for(lambda: "and not " + kernel.sha256 in boot.server.log.read_text())
        assert not (boot.room.root / ".assay" / "images" / kernel.sha256).exists()
    finally:
        served.write_bytes(good)
    wait_for(lambda: fetch(boot, f"images/{kernel.sha256}/kernel") == good)


def test_a_file_that_was_changed_on_the_servers_disk_is_put_aside(boot: BootRoom) -> None:
    kernel = boot.room.fleet.images["gpu-node-2026.10"].kernel
    wait_for(lambda: fetch(boot, f"images/{kernel.sha256}/kernel"))
    path = Path(boot.room.root / ".assay" / "images" / kernel.sha256)
    path.write_bytes(b"changed by a hand")
    with pytest.raises(urllib.error.HTTPError, match="503"):
        boot.server.ask(f"images/{kernel.sha256}/kernel")
    assert "it was changed" in boot.server.log.read_text()
    wait_for(lambda: fetch(boot, f"images/{kernel.sha256}/kernel"))


def test_a_machine_that_boots_in_a_loop_must_wait_and_is_told_once(boot: BootRoom) -> None:
    scripts = [boot.server.ask("script?mac=02:00:00:00:00:06&serial=A520112X4400006").decode() for _ in range(8)]
    assert [("kernel" in script) for script in scripts] == [True] * 5 + [False] * 3
    assert "boots in a loop" in scripts[5]
    (attempt,) = boot.attempts("n0006")
    assert attempt.failure.startswith("boots in a loop: it fetched its script 6 times")


def fetch(boot: BootRoom, path: str) -> bytes:
    try:
        return boot.server.ask(path)
    except urllib.error.HTTPError:
        return b""


def wait_for(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.1)
