"""Acting through a BMC, on the lab's: power, firmware both ways, tasks. Every proof is a new reading."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.adapters.bmc.client import BmcClient, open_bmc
from assay.adapters.bmc.errors import BmcUnreachable
from assay.adapters.bmc.firmware import ImageServer, RedfishTask, parse_task, read_firmware_inventory, read_task
from assay.model.errors import AssayError

NODE = "n0003"


def image(folder: Path, component: str, version: str, inventory: list[str]) -> Path:
    header = {"component": component, "version": version, "inventory": inventory}
    path = folder / f"{component}-{version}.bin"
    path.write_bytes(json.dumps(header).encode() + b"\n" + b"\0\xff\r\n" * 5000)
    return path


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    ends_at = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends_at, "it did not come true"
        time.sleep(0.05)


def wait_for_task(bmc: BmcClient, task: RedfishTask, seconds: float) -> RedfishTask:
    """Ask for a task until it is over. A BMC that does not answer may restart, so it is asked again."""
    ends_at = time.monotonic() + seconds
    while not task.is_over:
        assert time.monotonic() < ends_at, f"it is still {task.state}"
        time.sleep(0.05)
        with contextlib.suppress(BmcUnreachable):
            task = read_task(bmc, task.path)
    return task


@pytest.mark.parametrize("how", ["multipart", "simple"])
def test_an_image_arrives_byte_for_byte_and_its_version_is_read_back(
    bmc: BmcClient, rehearsal: Any, tmp_path: Path, how: Any
) -> None:
    push = image(tmp_path, "hca", f"9.9-{how}", ["HCA_1"])
    task = bmc.push_firmware(push, how)
    assert task
    assert wait_for_task(bmc, task, 10).is_success
    bmc.reset_system("ForceRestart")
    versions = read_firmware_inventory(bmc).running
    assert versions["HCA_1"] == {"value": f"9.9-{how}"}
    assert versions["HCA_0"] != {"value": f"9.9-{how}"}
    flashed = rehearsal.world.load(NODE)["flashes"][-1]
    assert flashed["image_sha256"] == hashlib.sha256(push.read_bytes()).hexdigest()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_bmc_fetches_an_image_over_ipv4_and_ipv6(address: str, tmp_path: Path) -> None:
    push = tmp_path / "own.bin"
    push.write_bytes(b"image")
    try:
        server = ImageServer(push, address)
    except OSError:
        pytest.skip(f"this machine has no {address}")
    with server, urllib.request.urlopen(server.uri) as answer:
        assert answer.read() == b"image"


def test_firmware_that_needs_a_reset_runs_only_after_it(bmc: BmcClient, tmp_path: Path) -> None:
    task = bmc.push_firmware(image(tmp_path, "bios", "9.9.9", ["BIOS"]), "multipart")
    assert task
    wait_for_task(bmc, task, 10)
    assert read_firmware_inventory(bmc).running["BIOS"] != {"value": "9.9.9"}
    bmc.reset_system("ForceRestart")
    assert read_firmware_inventory(bmc).running["BIOS"] == {"value": "9.9.9"}


def test_a_task_that_fails_says_so_and_the_version_stays(bmc: BmcClient, rehearsal: Any, tmp_path: Path) -> None:
    with rehearsal.world.change(NODE) as state:
        state["fails"]["flash"] = ["hmc"]
    before = read_firmware_inventory(bmc).running
    task = bmc.push_firmware(image(tmp_path, "hmc", "9", ["HGX_FW_BMC_0"]), "multipart")
    assert task
    ended = wait_for_task(bmc, task, 10)
    assert (ended.state, ended.is_success) == ("Exception", False)
    assert ended.message
    assert read_firmware_inventory(bmc).running == before
    assert read_task(bmc, ended.path) == ended


def test_power_goes_through_powering_on(bmc: BmcClient, rehearsal: Any) -> None:
    boot = rehearsal.world.load(NODE)["boot"]["id"]
    bmc.reset_system("ForceOff")
    assert bmc.read_power_state() == "Off"
    bmc.reset_system("On")
    assert bmc.read_power_state() == "PoweringOn"
    until(lambda: bmc.read_power_state() == "On")
    assert rehearsal.world.load(NODE)["boot"]["id"] != boot


def test_a_reset_that_the_system_does_not_know_is_refused_before_it_is_asked(bmc: BmcClient) -> None:
    with pytest.raises(AssayError) as trouble:
        bmc.reset_system("Nmi")
    assert f"{NODE} BMC 127.0.0.1" in str(trouble.value)
    assert "ForceRestart" in trouble.value.fix


def test_a_bmc_that_restarts_is_waited_for_and_asked_in_a_new_session(bmc: BmcClient, tmp_path: Path) -> None:
    task = bmc.push_firmware(image(tmp_path, "hmc", "9", ["HGX_FW_BMC_0"]), "multipart")
    assert task
    bmc.reset_bmc()
    assert wait_for_task(bmc, task, 20).is_over
    assert bmc.read_power_state() == "On"


def test_a_task_that_the_bmc_forgot_is_gone_not_done(bmc: BmcClient) -> None:
    gone = read_task(bmc, "/redfish/v1/TaskService/Tasks/4711")
    assert (gone.state, gone.is_over, gone.is_success) == ("Gone", True, False)


def test_an_image_that_is_not_there_is_said_plainly(bmc: BmcClient, tmp_path: Path) -> None:
    with pytest.raises(AssayError, match=r"nothing\.bin cannot be read: No such file"):
        bmc.push_firmware(tmp_path / "nothing.bin", "multipart")


def test_an_image_larger_than_the_bmc_takes_is_not_sent(bmc: BmcClient, tmp_path: Path) -> None:
    big = tmp_path / "big.bin"
    with big.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(AssayError, match="the BMC takes"):
        bmc.push_firmware(big, "multipart")


def test_what_the_service_does_not_offer_gives_way_to_what_it_does(tiny: Any, ca_file: Path, tmp_path: Path) -> None:
    service = tiny.tree["/redfish/v1/UpdateService"]
    push = image(tmp_path, "hmc", "9", ["BMC"])
    with open_bmc(tiny.node(bmc_ca=str(ca_file))) as bmc:
        with pytest.raises(AssayError, match="advertises neither"):
            bmc.push_firmware(push, "multipart")
        service["Actions"] = {"#UpdateService.SimpleUpdate": {"target": "/odd/place"}}
        tiny.odd["/odd/place"] = tiny.status(400, "not today")
        with pytest.raises(AssayError, match="POST /odd/place answered 400: not today"):
            bmc.push_firmware(push, "multipart")


def test_a_system_that_offers_no_reset_is_told(tiny: Any, ca_file: Path) -> None:
    with open_bmc(tiny.node(bmc_ca=str(ca_file))) as bmc:
        with pytest.raises(AssayError, match=r"offers no ComputerSystem\.Reset"):
            bmc.reset_system("On")
        with pytest.raises(AssayError, match="links to no Manager"):
            bmc.reset_bmc()


def test_completed_but_critical_is_not_well() -> None:
    task = parse_task({"@odata.id": "/t/1", "TaskState": "Completed", "TaskStatus": "Critical", "PercentComplete": 100})
    assert task.is_over
    assert not task.is_success
    assert not RedfishTask("/t/1", "Suspended").is_over
