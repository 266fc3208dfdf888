"""A fault that another process plants shows at the next request; how unhealthy BMCs answer."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/System_0"
CHASSIS = f"{ROOT}/Chassis/Chassis_0"
MANAGER = f"{ROOT}/Managers/BMC_0"


def test_a_power_supply_that_loses_its_input_shows_at_once(lab: Any) -> None:
    supply = f"{CHASSIS}/PowerSubsystem/PowerSupplies/2"
    assert lab.ask("GET", supply).json()["Status"] == {"State": "Enabled", "Health": "OK"}
    with lab.world.change("n0003") as state:
        state["psus"][2].update(health="Critical", input_v=0, output_w=0)
    assert lab.ask("GET", supply).json()["Status"]["Health"] == "Critical"
    assert lab.ask("GET", supply).json()["LineInputStatus"] == "LossOfInput"
    assert lab.ask("GET", f"{supply}/Metrics").json()["InputVoltage"] == {"Reading": 0}
    assert lab.ask("GET", SYSTEM).json()["Status"]["Health"] == "Critical"


def test_an_empty_bay_is_absent_and_reads_null_never_zero(lab: Any) -> None:
    with lab.world.change("n0003") as state:
        state["psus"][5]["present"] = False
    supply = f"{CHASSIS}/PowerSubsystem/PowerSupplies/5"
    assert lab.ask("GET", supply).json()["Status"] == {"State": "Absent", "Health": None}
    assert lab.ask("GET", f"{supply}/Metrics").json()["InputVoltage"] == {"Reading": None}
    assert lab.ask("GET", f"{CHASSIS}/Sensors/PSU_5_INPUT_VOLTAGE").json()["Reading"] is None


def test_a_lost_gpu_has_no_temperature_and_an_off_system_has_none_at_all(lab: Any) -> None:
    with lab.world.change("n0003") as state:
        state["gpus"][6].update(lost=True)
        state["gpus"][0].update(temperature_c=91)
    sensor = f"{CHASSIS}/Sensors/HGX_GPU_SXM_{{}}_TEMP_0"
    assert lab.ask("GET", sensor.format(7)).json()["Reading"] is None
    assert lab.ask("GET", sensor.format(1)).json()["Reading"] == 91
    lab.ask("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", json={"ResetType": "ForceOff"})
    off = lab.ask("GET", sensor.format(1)).json()
    assert (off["Reading"], off["Status"]["State"]) == (None, "UnavailableOffline")


def test_a_slow_fan_and_hot_air_show(lab: Any) -> None:
    with lab.world.change("n0003") as state:
        state["fans"][1].update(rpm=900, health="Warning")
        state["inlet_c"] = 38
    fan = lab.ask("GET", f"{CHASSIS}/ThermalSubsystem/Fans/1").json()
    assert (fan["SpeedPercent"]["SpeedRPM"], fan["Status"]["Health"]) == (900, "Warning")
    metrics = lab.ask("GET", f"{CHASSIS}/ThermalSubsystem/ThermalMetrics").json()
    assert metrics["TemperatureSummaryCelsius"]["Intake"]["Reading"] == 38


def test_a_silent_bmc_takes_the_connection_and_never_answers(lab: Any) -> None:
    with lab.world.change("n0003") as state:
        state["fails"]["bmc_silent"] = True
    begin = time.monotonic()
    with pytest.raises(requests.ReadTimeout):
        lab.ask("GET", SYSTEM, timeout=0.5)
    assert time.monotonic() - begin >= 0.5
    with lab.world.change("n0003") as state:
        state["fails"]["bmc_silent"] = False
    assert lab.ask("GET", SYSTEM).status_code == 200


def test_a_silent_bmc_does_not_hold_up_its_neighbours(build: Any) -> None:
    lab = build("n0003", "n0004")
    with lab.world.change("n0003") as state:
        state["fails"]["bmc_silent"] = True
    with ThreadPoolExecutor(8) as pool:
        hanging = [pool.submit(lab.ask, "GET", SYSTEM) for _ in range(6)]
        assert lab.ask("GET", SYSTEM, node="n0004").status_code == 200
        assert not any(future.done() for future in hanging)
        build.stop()
        assert all(isinstance(future.exception(), requests.RequestException) for future in hanging)


def test_images_that_never_come_do_not_hold_up_a_reset(lab: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nowhere, ThreadPoolExecutor(10) as pool:
        image = {"ImageURI": f"http://127.0.0.1:{nowhere.getsockname()[1]}/never.bin"}
        update = f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate"
        waiting = [pool.submit(lab.ask, "POST", update, json=image) for _ in range(10)]
        time.sleep(0.3)
        off = lab.ask("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", json={"ResetType": "ForceOff"})
        assert off.status_code == 204
        assert not any(future.done() for future in waiting)
        for _ in waiting:
            nowhere.accept()[0].close()
        assert {future.result().json()["TaskState"] for future in waiting} == {"Exception"}


def test_a_bmc_that_restarts_is_away_for_its_time_and_has_forgotten_its_sessions(lab: Any) -> None:
    client = lab.client()
    client.post(f"{MANAGER}/Actions/Manager.Reset", body={"ResetType": "GracefulRestart"})
    away = lab.ask("GET", f"{ROOT}/")
    assert (away.status_code, away.headers["Retry-After"]) == (503, "1")
    lab.pass_s(31)
    assert lab.ask("GET", f"{ROOT}/").status_code == 200
    assert client.get(SYSTEM).status == 401


def test_the_state_on_disk_remembers_what_the_clock_brought(lab: Any) -> None:
    lab.ask("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", json={"ResetType": "ForceRestart"})
    lab.pass_s(61)
    lab.ask("GET", SYSTEM)
    assert lab.state()["power"] == {"state": "On", "on_at": None}


def test_a_body_that_is_too_large_is_refused(lab: Any) -> None:
    answer = lab.ask("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", data=b"x" * (1 << 21))
    assert answer.status_code == 413
