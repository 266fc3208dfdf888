"""A real iPXE runs our scripts, a real kernel starts, and its first program gets its data and reports itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay.act.boot.attempts import BOOT_KINDS, fold_attempts
from assay.ledger.store import Ledger
from assay.model.entries.boot import BootStageEntry, MachineSeenEntry
from tests.act.boot.boot_room import BootServer, lay_out_boot, serve_real_image
from tests.support.real_machine import (
    COMMAND_LINE_MARK,
    HOST,
    MachineIdentity,
    find_command_line,
    find_obstacle,
    run_machine,
)
from tests.support.reserved_ports import reserve_ports

UEFI_CODE, UEFI_VARIABLES = Path("/usr/share/OVMF/OVMF_CODE_4M.fd"), Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
UEFI_IPXE = Path("/usr/lib/ipxe/ipxe.efi")
pytestmark = pytest.mark.slow(minutes=3)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    """A server for real machines: qemu's own network leads 10.0.2.2 to this machine's loopback."""
    if obstacle := find_obstacle():
        pytest.skip(obstacle)
    root = tmp_path_factory.mktemp("real")
    port = reserve_ports(1)[0]
    lay_out_boot(root, port, url=f"http://{HOST}:{port}")
    serve_real_image(root)
    server = BootServer(root, port)
    subprocess.run([sys.executable, "-m", "assay", "images", "--fetch", "--fleet", str(root)], check=True)
    server.start()
    yield server
    server.stop()


def test_a_machine_boots_to_its_first_report(server: BootServer, tmp_path: Path) -> None:
    identity = MachineIdentity("02:00:00:00:00:01", "A520112X4400001", "nonce-1")
    console = run_machine(tmp_path, server.url_of_machines, identity)
    assert "assay: n0001 boots gpu-node-2026.10" in console
    assert "asset tag nonce-1" in console, "what its SMBIOS shows"
    assert find_command_line(console).startswith("initrd=initrd0 console=ttyS0")
    assert "#cloud-config" in console, "it has its user-data"
    ledger = Ledger.open(server.root / ".assay" / "ledger.sqlite")
    (attempt,) = fold_attempts(ledger.entries("n0001", BOOT_KINDS)).values()
    assert list(attempt.stages) == ["pxe", "kernel", "cloud-init"]
    stages = [BootStageEntry.read(entry) for entry in ledger.entries("n0001", [BootStageEntry.kind])]
    assert stages[-1].words == "serial A520112X4400001"


def test_a_machine_with_uefi_boots_too(server: BootServer, tmp_path: Path) -> None:
    if missing := [str(file) for file in (UEFI_CODE, UEFI_VARIABLES, UEFI_IPXE) if not file.exists()]:
        pytest.skip(f"{', '.join(missing)} not found: install ovmf and ipxe")
    shutil.copy(UEFI_VARIABLES, tmp_path / "variables.fd")
    loader = tmp_path / "disk/EFI/BOOT/BOOTX64.EFI"
    loader.parent.mkdir(parents=True)
    shutil.copy(UEFI_IPXE, loader)
    uefi = ["-drive", f"if=pflash,format=raw,readonly=on,file={UEFI_CODE}"]
    uefi += ["-drive", f"if=pflash,format=raw,file={tmp_path}/variables.fd"]
    uefi += [
        "-drive",
        f"id=d0,if=none,format=raw,file=fat:rw:{tmp_path}/disk",
        "-device",
        "virtio-blk-pci,drive=d0,bootindex=0",
    ]
    identity = MachineIdentity("02:00:00:00:00:02", "A520112X4400002")
    console = run_machine(tmp_path, server.url_of_machines, identity, more=uefi)
    assert "BdsDxe: starting Boot" in console, "the boot manager of UEFI"
    assert "initrd=initrd0 console=ttyS0" in find_command_line(console), console[-2000:]
    (attempt,) = fold_attempts(Ledger.open(server.root / ".assay/ledger.sqlite").entries("n0002", BOOT_KINDS)).values()
    assert list(attempt.stages) == ["pxe", "kernel", "cloud-init"]


def test_a_stranger_gets_no_image_and_is_listed_with_its_serial_number(server: BootServer, tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_machine(tmp_path, server.url_of_machines, MachineIdentity("02:00:00:00:00:77", "SN-STRANGER"), 25)
    seen = [
        MachineSeenEntry.read(entry).machine
        for entry in Ledger.open(server.root / ".assay" / "ledger.sqlite").entries(kinds=[MachineSeenEntry.kind])
    ]
    assert [one.serial for one in seen] == ["SN-STRANGER"]
    assert seen[0].mac == "02:00:00:00:00:77"


def test_the_command_line_is_what_the_last_first_program_showed() -> None:
    shown = f"[0.1] Linux version 6.1\r\n{COMMAND_LINE_MARK}console=ttyS0 assay.attempt=n1.2\r\n[3.5] Power down\r\n"
    assert find_command_line(shown) == "console=ttyS0 assay.attempt=n1.2"
    assert find_command_line("Booting from ROM...\r\n") == ""
