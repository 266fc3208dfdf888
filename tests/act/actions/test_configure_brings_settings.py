"""The playbook configure.yml, with the real ansible-playbook, against the lab."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.actions import reboot, zap
from assay.act.remedies.settings import find_configuration_mismatches
from assay.declare.loader import load_fleet
from tests.support.lab_room import Room, wish

INSTALL = ("-e", "fabric_manager_install='apt-get install --yes nvidia-fabricmanager-570=570.172.08'")


def run_configure(room: Room, node: str, *options: str) -> str:
    """Run the playbook as a person would, without assay. Return what it printed."""
    program = Path(sys.executable).parent / "ansible-playbook"
    command = [program, "-i", "inventory", "playbooks/configure.yml", "--limit", node, *options]
    done = subprocess.run(
        command,
        cwd=room.root,
        capture_output=True,
        text=True,
        env=os.environ | {"ANSIBLE_NOCOLOR": "1", "ASSAY_CONTEXT": "lab"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_bios_settings_are_shown_then_brought_then_left_alone(room: Room):
    room.fresh("n0004")
    room.change("n0004", lambda state: state["box"]["bios"].update(ACSControl="Enabled"))

    shown = run_configure(room, "n0004", "--check", "--diff", "--tags", "bmc")
    assert "-bios.ACSControl: Enabled" in shown
    assert "+bios.ACSControl: Disabled" in shown
    assert room.state("n0004")["box"]["bios_pending"] == {}

    assert "changed=1" in run_configure(room, "n0004", "--tags", "bmc")
    assert room.state("n0004")["box"]["bios"]["ACSControl"] == "Disabled"
    assert "changed=0" in run_configure(room, "n0004", "--tags", "bmc")
    assert room.state("n0004")["boot"]["count"] == 2


@pytest.mark.slow
def test_settings_of_the_bmc_are_shown_then_brought_then_left_alone(room: Room):
    room.fresh("n0004")
    room.change("n0004", lambda state: state["box"].update(power_restore="AlwaysOff"))
    room.change("n0004", lambda state: state["box"]["ntp"].update(servers=["elsewhere.example"]))

    shown = run_configure(room, "n0004", "--check", "--diff", "--tags", "bmc")
    assert "-bmc.ntp.servers: elsewhere.example" in shown
    assert "+bmc.power_restore: LastState" in shown
    assert room.state("n0004")["box"]["power_restore"] == "AlwaysOff"

    assert "changed=1" in run_configure(room, "n0004", "--tags", "bmc")
    assert room.state("n0004")["box"]["power_restore"] == "LastState"
    assert "changed=0" in run_configure(room, "n0004", "--tags", "bmc")
    assert room.state("n0004")["boot"]["count"] == 1, "no restart"


@pytest.mark.slow
def test_an_account_of_the_bmc_gets_its_password_and_nobody_prints_it(room: Room, monkeypatch: pytest.MonkeyPatch):
    room.fresh("n0004")
    monkeypatch.setenv("ASSAY_BMC_MONITOR_PASSWORD", "swordfish-77")
    monkeypatch.setenv("ANSIBLE_VERBOSITY", "4")
    room.change("n0004", lambda state: state["accounts"].clear())
    shown = run_configure(room, "n0004", "--check", "--diff", "--tags", "bmc")
    assert "-bmc.accounts.users.monitor: absent" in shown
    assert room.state("n0004")["accounts"] == {}

    printed = run_configure(room, "n0004", "--tags", "bmc", "--diff")
    (account,) = room.state("n0004")["accounts"].values()
    assert (account["user"], account["role"]) == ("monitor", "ReadOnly")
    assert "changed=0" in run_configure(room, "n0004", "--tags", "bmc", "-e", "configure_bmc_passwords=true")
    assert "swordfish" not in shown + printed


@pytest.mark.slow
def test_settings_of_the_host_are_shown_then_brought_then_left_alone(room: Room):
    room.fresh("n0004")
    room.change("n0004", spoil_host)

    shown = run_configure(room, "n0004", "--check", "--diff", "--tags", "host", *INSTALL)
    assert "zone_reclaim_mode: 1" in shown
    assert "+vm.zone_reclaim_mode = 0" in shown
    assert "-ecc of 00000000:61:00.0: 0" in shown
    assert "-LINK_TYPE_P1 of 0000:5e:00.0: ETH(2)" in shown
    assert "+EXP_ROM_UEFI_x86_ENABLE of eth1: True" in shown
    assert room.state("n0004")["gpus"][3]["ecc_pending"] is False
    assert room.state("n0004")["hcas"][3]["settings"]["LINK_TYPE_P1"]["next_boot"] == "ETH(2)"
    assert room.state("n0004")["boot"]["count"] == 1
    assert not root_of(room, "n0004", "etc/sysctl.d/90-assay.conf").exists()

    brought = run_configure(room, "n0004", "--tags", "host", *INSTALL)
    assert "changed=0" not in brought
    assert room.state("n0004")["boot"]["count"] == 2, "one restart for kernel, command line, ECC and firmware settings"
    gpus = room.state("n0004")["gpus"]
    assert (gpus[3]["ecc_enabled"], gpus[3]["persistence"], gpus[5]["compute_mode"]) == (True, True, 0)
    rail = {"default": "IB(1)", "current": "IB(1)", "next_boot": "IB(1)"}
    assert room.state("n0004")["hcas"][3]["settings"]["LINK_TYPE_P1"] == rail
    assert room.state("n0004")["nics"][1]["settings"]["EXP_ROM_UEFI_x86_ENABLE"]["current"] == "True(1)"
    unit = root_of(room, "n0004", "etc/systemd/system/assay-gpu-settings.service").read_text()
    assert "ExecStart=-nvidia-smi -pm 1" in unit
    assert room.state("n0004")["host"]["fabric_manager"] == "570.172.08"
    assert room.state("n0004")["module_options"] == {"nvidia": {"NVreg_EnablePCIERelaxedOrderingMode": "1"}}
    assert room.state("n0004")["host"]["hugepages"]["1048576kB"] == 0
    drop_in = root_of(room, "n0004", "etc/systemd/system/containerd.service.d/90-assay.conf").read_text()
    assert drop_in.endswith("[Service]\nLimitMEMLOCK=infinity\n")
    assert "ntp2.lab1.example" in room.state("n0004")["host"]["clock"]["sources"]
    limits = root_of(room, "n0004", "etc/security/limits.d/90-assay.conf")
    assert limits.read_text() == "* soft memlock unlimited\n* hard memlock unlimited\n"
    assert "kernel.numa_balancing = 0" in root_of(room, "n0004", "etc/sysctl.d/90-assay.conf").read_text()
    again = run_configure(room, "n0004", "--tags", "host", *INSTALL)
    assert "changed=0" in again, again


def spoil_host(state):
    host = state["host"]
    host["sysctls"]["vm.zone_reclaim_mode"] = "1"
    host["modules"].remove("nvidia_peermem")
    host["services"]["nvidia-dcgm"] = "inactive"
    host |= {"governor": "powersave", "transparent_hugepages": "always"}
    state["nics"][0]["mtu"] = 1500
    state["cmdline"] = state["cmdline"].replace("pci=realloc=off", "")
    state["kernel"] = "6.8.0-1-generic"
    state["gpus"][3] |= {"ecc_enabled": False, "ecc_pending": False, "persistence": False}
    state["gpus"][5]["compute_mode"] = 3
    state["module_options"]["nvidia"]["NVreg_EnablePCIERelaxedOrderingMode"] = "0"
    host["hugepages"]["1048576kB"] = 2
    host["unit_settings"]["containerd.service"]["LimitMEMLOCK"] = "8388608"
    host["clock"]["sources"] = ["10.0.0.11"]
    state["hcas"][3]["settings"]["LINK_TYPE_P1"] |= {"current": "ETH(2)", "next_boot": "ETH(2)"}
    state["nics"][1]["settings"]["EXP_ROM_UEFI_x86_ENABLE"] |= {"current": "False(0)", "next_boot": "False(0)"}
    host["fabric_manager"] = "570.133.20"
    host["files"]["/etc/security/limits.d/90-assay.conf"] = "* hard memlock 64\n"


def root_of(room: Room, node: str, path: str) -> Path:
    return room.world.folder(node) / "root" / path


@pytest.mark.slow
def test_zap_brings_the_settings_of_bmc_and_host_and_proves_them(room: Room):
    room.fresh("n0004")
    context, intent = room.context(), wish("zap", "n0004")

    def spoil(state):
        state["box"]["bios"]["ACSControl"] = "Enabled"
        state["host"]["sysctls"]["vm.zone_reclaim_mode"] = "1"

    room.change("n0004", spoil)
    wrong = zap.verify(context, intent)
    assert wrong.done is False
    assert set(wrong.facts["settings"]) == {"bios.ACSControl", "host.sysctls.vm.zone_reclaim_mode"}
    zap.run(context, intent)
    proof = zap.verify(context, intent)
    assert proof.done, proof.reason
    assert proof.reason == "has the firmware of hgx-h100-2026-10 and the settings of hgx-h100"


def test_settings_of_a_host_that_does_not_answer_are_not_known_to_be_right(room: Room):
    room.fresh("n0004")
    room.change("n0004", lambda state: state["power"].update(state="Off"))
    proof = zap.verify(room.context(), wish("zap", "n0004"))
    assert proof.done is None
    assert "No route to host" in proof.reason
    room.fresh("n0004")


def test_the_operating_system_of_an_unmanaged_node_is_left_alone(room: Room):
    room.fresh("n0017")
    room.change("n0017", lambda state: state["host"]["sysctls"].update({"vm.zone_reclaim_mode": "1"}))
    room.change("n0017", lambda state: state["box"]["bios"].update(ACSControl="Enabled"))
    (mismatch,) = find_configuration_mismatches(room.fleet, "n0017")
    assert mismatch.name == "bios.ACSControl"
    room.fresh("n0017")


@pytest.mark.slow
def test_a_node_whose_root_is_in_memory_gets_its_settings_after_each_boot_and_no_files(room: Room):
    room.fresh("n0006")
    room.change("n0006", lambda state: state["host"]["sysctls"].update({"vm.zone_reclaim_mode": "1"}))
    spec = room.root / "specs/nodes/hgx-h100.yaml"
    before = spec.read_text()
    spec.write_text(before.replace("\n  governor: performance", "\n  root: memory\n  governor: performance"))
    try:
        fleet = load_fleet(room.root, [room.world.home / "inventory.yml"])
        context = replace(room.context(), fleet=fleet)
        reboot.run(context, wish("reboot", "n0006", before={"boot_id": room.state("n0006")["boot"]["id"]}))
    finally:
        spec.write_text(before)
    assert find_configuration_mismatches(fleet, "n0006") == []
    assert room.state("n0006")["boot"]["count"] == 2
    assert not root_of(room, "n0006", "etc/sysctl.d/90-assay.conf").exists()
