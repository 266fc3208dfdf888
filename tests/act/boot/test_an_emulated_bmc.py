"""A stranger's BMC starts a stranger's machine from our server: sushy-emulator, libvirt, iPXE, a kernel of Debian."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from assay.act.actions import netboot
from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.boot.attempts import BOOT_KINDS, fold_attempts
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.observe.evidence_store import EvidenceStore
from tests.act.boot import emulated_bmc
from tests.act.boot.boot_room import BootServer, lay_out_boot, serve_real_image
from tests.support.lab_room import wish
from tests.support.real_machine import HOST, find_obstacle
from tests.support.reserved_ports import reserve_ports

SHORT = {
    "pxe": 3,
    "kernel": 3,
    "cloud_init": 3,
    "agent": 3,
    "source": "a test: no probe answers, so this is waited for",
}


@pytest.mark.slow(minutes=5)
def test_the_machine_of_an_emulated_bmc_boots_to_its_first_report(tmp_path: Path) -> None:
    if obstacle := emulated_bmc.find_missing_tool() or find_obstacle():
        pytest.skip(obstacle)
    (port,) = reserve_ports(1)
    lay_out_boot(tmp_path, port, url=f"http://{HOST}:{port}", attempts=1, deadlines=SHORT)
    serve_real_image(tmp_path)
    server = BootServer(tmp_path, port)
    mac, serial = "02:00:00:00:00:01", "A520112X4400001"
    with emulated_bmc.emulate_bmc(tmp_path, server.url_of_machines, mac, serial) as bmc_port:
        path = tmp_path / "inventory" / "macs.yml"
        hosts = yaml.safe_load(path.read_text())
        hosts["h100-a"]["hosts"]["n0001"] |= {
            "bmc_address": "127.0.0.1",
            "bmc_port": bmc_port,
            "bmc_ca": "ca.pem",
            "bmc_system": emulated_bmc.SYSTEM,
            "bmc_credentials": {"file": "bmc.login"},
        }
        path.write_text(yaml.safe_dump(hosts))
        (tmp_path / "bmc.login").write_text(f"{emulated_bmc.USER}:{emulated_bmc.PASSWORD}\n")
        server.start()
        told: list[str] = []
        home = tmp_path / ".assay"
        ledger = Ledger.open(home / "ledger.sqlite")
        context = ActionContext(
            replace(load_fleet(tmp_path), is_lab=True),
            ledger,
            EvidenceStore(home / "evidence"),
            SystemClock(),
            home,
            tmp_path,
            told.append,
        )
        before = netboot.before(context, wish("netboot", "n0001"))
        intent = EffectIntent("netboot-n0001", "netboot", "n0001", "d1", "a test wants it", before=before)
        try:
            with pytest.raises(AssayError, match="its only start failed; the last one after cloud-init: no agent"):
                netboot.run(context, intent)
        finally:
            server.stop()
    (attempt,) = fold_attempts(ledger.entries("n0001", BOOT_KINDS)).values()
    assert list(attempt.stages) == ["pxe", "kernel", "cloud-init"]
    assert attempt.effect == intent.effect
