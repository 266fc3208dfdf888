"""The unmodified `redfish` library works with a lab's BMC as with a real one."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redfish
import redfish_utilities
import trustme
from redfish.rest.v1 import InvalidCredentialsError, RetriesExhaustedError

from tests.support.example_images import IMAGES, make_image

SYSTEM = "/redfish/v1/Systems/System_0"
INVENTORY = "/redfish/v1/UpdateService/FirmwareInventory"
PUSH = "/redfish/v1/UpdateService/update-multipart"
GPU = f"{INVENTORY}/HGX_FW_GPU_SXM_1"


@pytest.fixture
def gpu_image(tmp_path: Path) -> Path:
    path = tmp_path / "gpu.bin"
    path.write_bytes(make_image("gpu", "97.00.NEW", IMAGES["gpu"][1]))
    return path


@pytest.fixture
def file_server(tmp_path: Path) -> Iterator[str]:
    """Where the operator's machine serves its images."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, directory=str(tmp_path), **kwargs)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def version(client: Any, path: str = GPU) -> str:
    return str(client.get(path).dict["Version"])


def test_it_logs_in_reads_and_logs_out(lab: Any) -> None:
    client = lab.client()
    system = client.get(SYSTEM).dict
    assert (system["SerialNumber"], system["PowerState"]) == (lab.state()["serial"], "On")
    location = client.get_session_location()
    client.logout()
    assert lab.ask("GET", location[location.index("/redfish") :]).status_code == 404


def test_a_wrong_password_is_a_401(lab: Any) -> None:
    with pytest.raises(InvalidCredentialsError):
        lab.client(password="wrong-secret")


def test_basic_authentication_works_as_well(lab: Any) -> None:
    trust = str(lab.world.home / "ca.pem")
    client = redfish.redfish_client(lab.base(), "operator", "a-long-secret", cafile=trust)
    client.login(auth=redfish.AuthMethod.BASIC)
    assert client.get(SYSTEM).status == 200


def test_its_certificate_is_verified(lab: Any, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.pem"
    trustme.CA().cert_pem.write_to_path(stranger)
    with pytest.raises(RetriesExhaustedError) as caught:
        redfish.redfish_client(lab.base(), "operator", "a-long-secret", cafile=str(stranger), max_retry=0).login()
    assert "certificate verify failed" in str(caught.value.__cause__ or caught.value.__context__)


def test_a_restart_is_seen_from_powering_on_to_a_running_system(lab: Any) -> None:
    client, before = lab.client(), lab.state()["boot"]["id"]
    redfish_utilities.system_reset(client, reset_type="ForceRestart")
    seen = []
    for wait_s in (0, 61, 61, 61):
        lab.pass_s(wait_s)
        system = client.get(SYSTEM).dict
        seen.append((system["PowerState"], system["BootProgress"]["LastState"]))
    assert seen == [
        ("PoweringOn", "PrimaryProcessorInitializationStarted"),
        ("On", "MemoryInitializationStarted"),
        ("On", "OSBootStarted"),
        ("On", "OSRunning"),
    ]
    assert lab.state()["boot"]["id"] != before


def test_a_pushed_image_is_written_by_a_task_and_runs_after_the_power_cycle(lab: Any, gpu_image: Path) -> None:
    client, old = lab.client(), lab.state()["firmware"]["HGX_FW_GPU_SXM_1"]
    answer = redfish_utilities.multipart_push_update(client, str(gpu_image))
    assert (answer.status, answer.is_processing, answer.dict["TaskState"]) == (202, True, "Running")
    lab.pass_s(45)
    half = answer.monitor(client)
    assert (half.status, half.dict["PercentComplete"], version(client)) == (202, 50, old)
    lab.pass_s(45)
    done = answer.monitor(client)
    assert (done.status, done.dict["TaskState"], done.dict["PercentComplete"]) == (200, "Completed", 100)
    assert version(client) == old
    client.post(f"{SYSTEM}/Actions/ComputerSystem.Reset", body={"ResetType": "ForceRestart"})
    assert version(client) == old
    client.post(f"{SYSTEM}/Actions/ComputerSystem.Reset", body={"ResetType": "PowerCycle"})
    assert version(client) == "97.00.NEW"


def test_a_simple_update_fetches_the_image_itself(lab: Any, gpu_image: Path, file_server: str) -> None:
    client = lab.client()
    answer = redfish_utilities.simple_update(client, f"{file_server}/{gpu_image.name}", targets=[GPU])
    assert answer.status == 202
    lab.pass_s(90)
    assert client.get(answer.dict["@odata.id"]).dict["TaskState"] == "Completed"
    assert list(lab.state()["staged"]) == ["HGX_FW_GPU_SXM_1"]
    assert len(lab.state()["flashes"]) == 1


def test_an_image_that_cannot_be_fetched_is_a_failed_task(lab: Any, file_server: str) -> None:
    client = lab.client()
    answer = redfish_utilities.simple_update(client, f"{file_server}/nothing.bin")
    task = client.get(answer.dict["@odata.id"]).dict
    assert (task["TaskState"], task["TaskStatus"]) == ("Exception", "Critical")
    assert "404" in task["Messages"][0]["Message"]
    assert answer.monitor(client).status == 500
    assert lab.state()["flashes"] == []


def test_an_answer_that_is_no_http_is_a_failed_task(lab: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as garbler:

        def garble() -> None:
            connection = garbler.accept()[0]
            connection.recv(1000)
            connection.sendall(b"220 welcome to ftp\r\n\r\n")
            connection.close()

        threading.Thread(target=garble, daemon=True).start()
        client = lab.client()
        answer = redfish_utilities.simple_update(client, f"http://127.0.0.1:{garbler.getsockname()[1]}/gpu.bin")
    assert client.get(answer.dict["@odata.id"]).dict["TaskState"] == "Exception"


def test_the_bmc_goes_straight_to_the_image_whatever_the_environment_says(
    lab: Any, gpu_image: Path, file_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = lab.client()
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert redfish_utilities.simple_update(client, f"{file_server}/{gpu_image.name}").dict["TaskState"] == "Running"


def test_a_file_that_is_no_image_is_a_failed_task(lab: Any, tmp_path: Path) -> None:
    (tmp_path / "noise.bin").write_bytes(b"\x00" * 5000)
    client = lab.client()
    answer = redfish_utilities.multipart_push_update(client, str(tmp_path / "noise.bin"))
    task = client.get(answer.dict["@odata.id"]).dict
    assert (task["TaskState"], lab.state()["flashes"]) == ("Exception", [])


def test_a_planted_failure_ends_the_task_in_exception_and_the_version_stays(lab: Any, gpu_image: Path) -> None:
    with lab.world.change("n0003") as state:
        state["fails"]["flash"] = ["gpu"]
    client, old = lab.client(), lab.state()["firmware"]["HGX_FW_GPU_SXM_1"]
    answer = redfish_utilities.multipart_push_update(client, str(gpu_image))
    lab.pass_s(91)
    assert client.get(answer.dict["@odata.id"]).dict["TaskState"] == "Exception"
    client.post(f"{SYSTEM}/Actions/ComputerSystem.Reset", body={"ResetType": "PowerCycle"})
    assert version(client) == old


def test_power_cut_in_the_middle_ends_the_task_in_exception(lab: Any, gpu_image: Path) -> None:
    client = lab.client()
    answer = redfish_utilities.multipart_push_update(client, str(gpu_image))
    lab.pass_s(30)
    client.post(f"{SYSTEM}/Actions/ComputerSystem.Reset", body={"ResetType": "ForceOff"})
    lab.pass_s(90)
    task = client.get(answer.dict["@odata.id"]).dict
    assert (task["TaskState"], task["PercentComplete"]) == ("Exception", 33)
    assert "ForceOff cut the power" in task["Messages"][0]["Message"]


def test_a_second_update_of_the_same_component_is_turned_away(lab: Any, gpu_image: Path) -> None:
    client = lab.client()
    redfish_utilities.multipart_push_update(client, str(gpu_image))
    with gpu_image.open("rb") as file:
        form = {"UpdateParameters": (None, "{}", "application/json"), "UpdateFile": ("gpu.bin", file.read())}
    again = client.post(
        "/redfish/v1/UpdateService/update-multipart", body=form, headers={"Content-Type": "multipart/form-data"}
    )
    assert (again.status, again.getheader("Retry-After")) == (409, "1")
    assert "task 1 is writing gpu" in again.dict["error"]["message"]
    assert len(lab.state()["flashes"]) == 1


def test_the_whole_inventory_comes_in_one_answer(lab: Any) -> None:
    members = lab.client().get(f"{INVENTORY}?$expand=.($levels=1)").dict["Members"]
    assert {entry["Id"]: entry["Version"] for entry in members} == lab.state()["firmware"]


def test_dmtfs_own_tools_read_sensors_power_and_fans(lab: Any) -> None:
    client = lab.client()
    readings = redfish_utilities.get_sensors(client)
    names = {reading["Name"] for chassis in readings for reading in chassis["Readings"]}
    assert {"TEMP_INLET", "HGX_GPU_SXM_8_TEMP_0"} <= names | {name.split()[0] for name in names}
    entries = redfish_utilities.get_log_entries(client, redfish_utilities.log_container.SYSTEM, "System_0", "SEL")
    assert entries[0]["Message"] == "System power is on"
