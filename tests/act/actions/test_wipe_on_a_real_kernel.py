"""A real kernel, nvme-cli and emulated NVMe drives: what is in use is left alone, and what is erased cannot be read."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.act.actions import nvme_machine

pytestmark = [
    pytest.mark.slow(minutes=2),
    pytest.mark.skipif(bool(obstacle := nvme_machine.find_obstacle()), reason=obstacle),
]
MARKER = "ab" * 32
PROGRAM = textwrap.dedent(
    """
    import json, os, subprocess, sys

    MARKERS = {"FREE": MARKER, "USED": MARKER}

    def tell(**said):
        print(ANSWER + json.dumps(said), flush=True)

    def probe():
        words = ["-m", "assay.node.probe", "--areas", "drive_wipe", "--markers", json.dumps(MARKERS)]
        words += ["--deadline", "30"]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
        tree = json.loads(done.stdout)["probe"]["drive_wipe"]
        return {drive["serial"]["value"]: drive for drive in tree.values()}

    def module(step, drives):
        orders = [
            {"serial": serial, "method": "format-erase", "marker": MARKER,
             "offsets": {name: one["offsets"] for name, one in drive["blocks"]["value"].items()}}
            for serial, drive in drives.items()
        ]
        arguments = {"ANSIBLE_MODULE_ARGS": {"step": step, "drives": orders, "release": []}}
        command = [sys.executable, "/drive_wipe.py"]
        done = subprocess.run(command, input=json.dumps(arguments), capture_output=True, text=True)
        return json.loads(done.stdout or json.dumps({"msg": done.stderr}))

    from assay.node.probe.devices import nvme
    smart = {"nvme": nvme.read_smart("nvme0")}
    os.environ["PATH"] = "/smartctl"
    os.makedirs("/smartctl")
    os.symlink("/usr/sbin/smartctl", "/smartctl/smartctl")
    smart["smartctl"] = nvme.read_smart("nvme0")
    os.environ["PATH"] = "/bin:/usr/sbin:/usr/bin"

    drives = probe()
    used = next(iter(drives["USED"]["blocks"]["value"]))
    subprocess.run(["mkswap", f"/dev/{used}"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["swapon", f"/dev/{used}"], check=True)
    before = probe()
    marked = module("mark", before)
    read = probe()
    erased = module("erase", read)
    tell(smart=smart, before=before, marked=marked, read=read, erased=erased, after=probe())
    """
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("nvme")
    drives = {serial: folder / f"{serial}.img" for serial in ("FREE", "USED")}
    for image in drives.values():
        image.write_bytes(b"a customer's data" * 500_000)
    program = f"MARKER, ANSWER = {MARKER!r}, {nvme_machine.ANSWER!r}\n{PROGRAM}"
    (answer,) = nvme_machine.run_program(folder, program, drives)
    found: dict[str, Any] = answer | {"free": drives["FREE"].read_bytes(), "used": drives["USED"].read_bytes()}
    return found


def test_the_probe_reads_what_a_real_drive_says(told: dict[str, Any]) -> None:
    free, used = told["before"]["FREE"], told["before"]["USED"]
    assert free["transport"] == {"value": "pcie"}
    assert free["methods"] == {"value": ["format-erase"]}, "qemu's drives know no sanitize, and no keys"
    assert "failed" in free["log"], "a refused log is no value"
    assert free["users"] == {"value": []}
    assert used["users"]["value"][0][0] == "swap"


def test_both_programs_give_the_readings_of_a_real_drive(told: dict[str, Any]) -> None:
    by_nvme, by_smartctl = told["smart"]["nvme"], told["smart"]["smartctl"]
    assert by_nvme.keys() == by_smartctl.keys()
    assert by_nvme["temperature_c"]["value"] == by_smartctl["temperature_c"]["value"]
    assert {kind for leaf in (*by_nvme.values(), *by_smartctl.values()) for kind in leaf} == {"value"}


def test_a_drive_in_use_is_refused_by_the_kernel_and_keeps_its_data(told: dict[str, Any]) -> None:
    for step in ("marked", "erased"):
        assert "USED: /dev/nvme1n1: it is in use" in told[step]["msg"]
        assert told[step]["drives"] == ["FREE"]
    assert told["used"].count(b"a customer's data") > 499_000
    assert next(iter(told["read"]["USED"]["blocks"]["value"].values()))["marked"] == 0


def test_a_marked_drive_that_is_formatted_holds_neither_marker_nor_data(told: dict[str, Any]) -> None:
    def marked(step: str) -> int:
        (samples,) = told[step]["FREE"]["blocks"]["value"].values()
        number: int = samples["marked"]
        return number

    assert [marked(step) for step in ("before", "read", "after")] == [0, 16, 0]
    assert b"customer" not in told["free"]
    assert MARKER.encode() not in told["free"]
