"""Starts that end badly: each is told with its last stage, and nothing that a machine says is believed for it."""

from __future__ import annotations

import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from assay.act.actions import netboot
from assay.act.boot.boot_requests import BootingMachine, answer_machine
from assay.act.boot.script import BootOrder
from assay.act.loop.context import ControllerContext
from assay.lab.faults.injection import inject_fault
from assay.model.errors import AssayError
from tests.act.boot.boot_room import IMAGE, PATIENCE_S, BootRoom, BootServer, open_boot_room
from tests.support.places import ROOT

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


@pytest.mark.slow
def test_a_machine_whose_dhcp_answer_is_anothers_is_told_by_the_stage_that_it_never_reached(hasty: BootRoom) -> None:
    hasty.plug_in("n0001")
    hasty.room.change("n0001", lambda state: state.update(boot_server="http://127.0.0.1:9"))
    told = fail(hasty, "n0001")
    assert "after the power-on" in told
    assert "no pxe within 12 min; its BMC says: power On, PrimaryProcessorInitializationStarted; " in told
    assert "iPXE asks http://127.0.0.1:9 / <urlopen error [Errno 111] Connection refused>" in told


def test_a_machine_that_hangs_after_its_kernel_is_told_with_its_last_stage(hasty: BootRoom) -> None:
    hasty.plug_in("n0002")
    inject_fault(hasty.room.world, "boot.hangs", "n0002", {})
    told = fail(hasty, "n0002")
    assert "the last one after pxe: no kernel within 14 min; its BMC says: power On, " in told
    assert told.partition("\n")[0].endswith(
        "/ Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"
    )
    assert "... ok / Command line: " in told, "without the codes of a terminal"


@pytest.mark.slow(minutes=1)
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
    for stored in (boot.room.root / ".assay-lab" / "images").glob("*"):
        stored.unlink()
    served.write_bytes(b"something else")
    try:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            boot.server.ask(f"images/{kernel.sha256}/kernel")
        wait_for(lambda: "and not " + kernel.sha256 in boot.server.log.read_text())
        assert not (boot.room.root / ".assay-lab" / "images" / kernel.sha256).exists()
    finally:
        served.write_bytes(good)
    wait_for(lambda: fetch(boot, f"images/{kernel.sha256}/kernel") == good)


def test_a_file_that_was_changed_on_the_servers_disk_is_put_aside(boot: BootRoom) -> None:
    kernel = boot.room.fleet.images["gpu-node-2026.10"].kernel
    wait_for(lambda: fetch(boot, f"images/{kernel.sha256}/kernel"))
    path = Path(boot.room.root / ".assay-lab" / "images" / kernel.sha256)
    path.write_bytes(b"changed by a hand")
    with pytest.raises(urllib.error.HTTPError, match="503"):
        boot.server.ask(f"images/{kernel.sha256}/kernel")
    wait_for(lambda: "it was changed" in boot.server.log.read_text())
    wait_for(lambda: fetch(boot, f"images/{kernel.sha256}/kernel"))


def test_a_machine_that_boots_in_a_loop_must_wait_and_who_asks_in_its_name_ends_no_start(boot: BootRoom) -> None:
    scripts = [boot.server.ask("script?mac=02:00:00:00:00:06&serial=A520112X4400006").decode() for _ in range(8)]
    assert [("kernel" in script) for script in scripts] == [True] * 5 + [False] * 3
    assert "boots in a loop" in scripts[5]
    assert all("sleep 60\n" in script for script in scripts[5:])
    (attempt,) = boot.attempts("n0006")
    assert attempt.failure == "", "anybody may have asked"
    assert attempt.fetches == 5, "more requests write nothing into the ledger"
    own = answer_machine(boot.room.context(), BootingMachine("02:00:00:00:00:06", "A520112X4400006"))
    assert isinstance(own, BootOrder), "the machine asks from another address"
    assert own.attempt == attempt.name


def test_two_servers_begin_one_start(boot: BootRoom) -> None:
    machine = BootingMachine("02:00:00:00:00:0b", "A520112X4400011")
    contexts = [boot.room.context() for _ in range(5)]
    together = Barrier(len(contexts))

    def ask(context: ControllerContext) -> str:
        together.wait()
        order = answer_machine(context, machine)
        assert isinstance(order, BootOrder)
        return order.attempt

    with ThreadPoolExecutor(len(contexts)) as pool:
        names = set(pool.map(ask, contexts))
    (attempt,) = boot.attempts("n0011")
    assert names == {attempt.name}
    assert attempt.fetches == len(contexts)


def test_a_stranger_is_recorded_by_its_own_mac_address_even_without_a_serial_number(boot: BootRoom) -> None:
    for _ in range(3):
        boot.server.ask("script?mac=02-AA-00-00-00-99&serial=")
    ledger = boot.room.context().ledger
    seen = [
        entry.body for entry in ledger.entries(kinds=["machine.seen"]) if "99" in entry.body["machine"].get("mac", "")
    ]
    assert seen == [{"machine": {"mac": "02:aa:00:00:00:99"}, "source": "report", "lab": True}]


def test_a_server_that_only_boots_machines_follows_the_inventory(boot: BootRoom) -> None:
    question = "script?mac=02:aa:00:00:00:0c&serial=A520112X4400012"
    assert b"no node has the MAC address" in boot.server.ask(question)
    shutil.copytree(ROOT / "suites", boot.room.root / "suites")  # changed files are taken only if all of them hold
    path = boot.room.root / "inventory" / "macs.yml"
    path.write_text(path.read_text().replace("02:00:00:00:00:0c", "02:aa:00:00:00:0c"))
    wait_for(lambda: b"n0012 boots" in ask_patiently(boot.server, question))


def test_grub_is_told_to_wait_in_its_own_words(boot: BootRoom) -> None:
    config = boot.server.ask("grub?mac=02:00:00:00:00:0d&serial=X").decode()
    assert config.splitlines()[-2:] == ["sleep 60", "reboot"]
    assert "n0013 has this MAC address, and another serial number than X" in config
    assert "ipxe" not in config


@pytest.mark.parametrize(
    "question",
    ["", "mac=n0001", "mac=02:00:00:00:00:0e&serial=" + "x" * 65, "mac=02:00:00:00:00:0e&serial=a%0Areboot"],
)
def test_what_no_firmware_says_is_refused(boot: BootRoom, question: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400"):
        boot.server.ask(f"script?{question}")
    assert not boot.attempts("n0014")


@pytest.mark.slow
def test_a_machine_may_fetch_a_part_of_a_file(boot: BootRoom) -> None:
    kernel = boot.room.fleet.images["gpu-node-2026.10"].kernel
    whole = IMAGE["vmlinuz"]
    wait_for(lambda: fetch(boot, f"images/{kernel.sha256}/kernel") == whole)
    url = f"{boot.server.url}/boot/v1/images/{kernel.sha256}/kernel"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Range": "bytes=4-9"})) as answer:
        assert (answer.status, answer.read()) == (206, whole[4:10])
        assert answer.headers["Content-Range"] == f"bytes 4-9/{len(whole)}"
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as answer:
        assert (answer.headers["Content-Length"], answer.read()) == (str(len(whole)), b"")


def ask_patiently(server: BootServer, question: str) -> bytes:
    """Return the answer; nothing while the server has no time for strangers."""
    try:
        return server.ask(question)
    except urllib.error.HTTPError as error:
        if error.code != 429:
            raise
        time.sleep(float(error.headers["Retry-After"]))
        return b""


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
