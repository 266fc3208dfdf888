"""Whatever would use an example on a real machine refuses before it does anything; in the lab the same is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.act.actions import wipe, zap
from assay.act.actions.action import ActionContext
from assay.act.boot import network_boot
from assay.act.boot.boot_requests import BootingMachine, answer_machine
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.remedies import settings
from assay.act.remedies.ansible_playbook import find_task_node
from assay.act.remedies.settings import BmcSettingsUpdate, SystemSettingsUpdate
from assay.act.schedules.collectives_search import search_collectives
from assay.cli.app import app
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.node.declared_settings import SettingMismatch
from assay.observe.evidence_store import EvidenceStore
from tests.support.lab_room import wish
from tests.support.places import ROOT

NODE = "n0003"
REFUSED = "is refused on a real machine"


@pytest.fixture(scope="module")
def real() -> Fleet:
    return load_fleet(ROOT)


def context(fleet: Fleet, home: Path, told: list[str] | None = None) -> ActionContext:
    tell = told.append if told is not None else lambda _: None
    ledger, store = Ledger.open(home / "ledger.sqlite"), EvidenceStore(home / "evidence")
    return ActionContext(fleet, ledger, store, SystemClock(), home, home / "reports", progress=tell)


def unreachable(*_: object, **__: object) -> Any:
    pytest.fail("a machine was asked")


def test_a_start_by_network_is_refused(real: Fleet, tmp_path: Path) -> None:
    with pytest.raises(AssayError, match=f"a start by network {REFUSED}: Provisioning lab1") as caught:
        network_boot.boot_declared_image(context(real, tmp_path), wish("netboot", NODE))
    assert caught.value.where.startswith("specs/provisioning/lab1.yaml:")
    assert context(real, tmp_path).ledger.entries() == []


def test_an_image_that_stands_in_is_refused_at_a_server_that_does_not(real: Fleet, tmp_path: Path) -> None:
    own = real.provisionings["lab1"].model_copy(
        update={"stands_in": "", "url": "http://boot.site", "secure_url": "https://boot.site"}
    )
    with pytest.raises(AssayError, match=f"{REFUSED}: Image gpu-node-2026.10"):
        network_boot.boot_declared_image(
            context(replace(real, provisionings={"lab1": own}), tmp_path), wish("netboot", NODE)
        )


def test_a_reboot_orders_no_start_from_it_and_says_why(
    real: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_boot, "open_fleet_bmc", unreachable)
    told: list[str] = []
    network_boot.order_image_at_next_boot(context(real, tmp_path, told), wish("reboot", NODE))
    assert "follows the machine's own boot order" in told[0]
    assert REFUSED in told[0]


def test_a_reboot_orders_no_start_by_network_unless_the_profile_says_so(
    real: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def silent(*_: object) -> Any:
        asked.append("BMC")
        raise AssayError("no answer")

    monkeypatch.setattr(network_boot, "open_fleet_bmc", silent)
    lab = replace(real, is_lab=True)
    network_boot.order_image_at_next_boot(context(allowing(lab), tmp_path), wish("reboot", NODE))
    assert asked == []
    network_boot.order_image_at_next_boot(context(allowing(lab, "network-starts"), tmp_path), wish("reboot", NODE))
    assert asked == ["BMC"]


def allowing(fleet: Fleet, *effects: str) -> Fleet:
    managed = fleet.profiles["managed"].model_copy(update={"may": list(effects)})
    return replace(fleet, profiles={**fleet.profiles, "managed": managed})


def test_the_boot_server_gives_a_machine_nothing(real: Fleet, tmp_path: Path) -> None:
    node = replace(real.nodes[NODE], mac="02:00:00:00:00:01")
    fleet = replace(real, nodes={NODE: node})
    machine = BootingMachine("02:00:00:00:00:01", node.serial)
    ask: Callable[[Fleet], Any] = lambda one: answer_machine(context(one, tmp_path), machine)  # noqa: E731
    with pytest.raises(AssayError, match=f"a start by network {REFUSED}"):
        ask(fleet)
    assert ask(replace(fleet, is_lab=True)).node == NODE


def test_settings_with_an_example_are_refused_before_the_firmware_and_before_any_setting(
    real: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (zap, settings):
        monkeypatch.setattr(module, "run_playbook", unreachable)
    monkeypatch.setattr(settings, "find_configuration_mismatches", lambda *_: [SettingMismatch("a", "1", "2")])
    with pytest.raises(AssayError, match=r"a change of settings is refused .*ntp1\.lab1\.example") as caught:
        zap.run(context(real, tmp_path), wish("zap", NODE))
    assert caught.value.where.startswith("specs/nodes/hgx-h100.yaml:")
    with pytest.raises(AssayError, match="a change of settings is refused"):
        settings.bring_configuration(context(real, tmp_path), wish("configure", NODE))


def test_settings_of_a_bmc_with_an_example_are_refused(real: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [SettingMismatch("bmc.ntp.servers", "ntp1.lab1.example", "none")]
    monkeypatch.setattr(BmcSettingsUpdate, "_read_mismatches", lambda _: wrong)
    monkeypatch.setattr("assay.act.remedies.settings.open_fleet_bmc", unreachable)
    with pytest.raises(AssayError, match=r"change of the BMC's settings is refused"):
        BmcSettingsUpdate(real, real.nodes[NODE]).apply()


def test_other_accounts_are_left_alone_unless_the_profile_says_otherwise(
    real: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [SettingMismatch("bmc.accounts.users.chief", "disabled", "enabled")]
    monkeypatch.setattr(BmcSettingsUpdate, "_read_mismatches", lambda _: wrong)
    monkeypatch.setattr("assay.act.remedies.settings.open_fleet_bmc", unreachable)
    with pytest.raises(AssayError, match="its BMC has chief, which the spec does not name, and its profile") as caught:
        BmcSettingsUpdate(allowing(replace(real, is_lab=True)), real.nodes[NODE]).apply()
    assert caught.value.where.startswith("specs/profiles/managed.yaml:")
    assert "other-accounts" in caught.value.fix


def test_the_boot_order_is_left_alone_unless_the_profile_says_otherwise(
    real: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "assay.act.remedies.settings."
    monkeypatch.setattr(path + "wait_until", lambda *_: True)
    monkeypatch.setattr(path + "open_fleet_bmc", lambda *_: __import__("contextlib").nullcontext())
    monkeypatch.setattr(
        path + "find_system_mismatches", lambda *_: [SettingMismatch("boot.first", "UEFI: PXE*", "disk")]
    )
    monkeypatch.setattr(path + "order_system_settings", unreachable)
    with pytest.raises(AssayError, match="its boot order differs from the spec, and its profile"):
        SystemSettingsUpdate(allowing(replace(real, is_lab=True)), real.nodes[NODE], 1.0).apply()


def test_drives_are_left_alone_unless_the_profile_says_otherwise(
    real: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wipe, "NodeWipe", unreachable)
    forbids = context(allowing(replace(real, is_lab=True)), tmp_path)
    with pytest.raises(AssayError, match="its local drives would be erased, and its profile"):
        wipe.run(forbids, wish("wipe", NODE))
    said = wipe.verify(forbids, wish("wipe", NODE))
    assert (said.done, "shred" in said.reason) == (False, False), "nothing is wrong with these drives"
    assert "profile managed does not name wipe; its drives stay here" in said.reason


def test_a_task_of_a_playbook_may_look_at_such_a_node_and_change_nothing(tmp_path: Path) -> None:
    for part in ("inventory", "specs"):
        (tmp_path / part).symlink_to(ROOT / part)
    variables = {"playbook_dir": str(tmp_path / "playbooks"), "inventory_hostname": NODE}
    with pytest.raises(AssayError, match=f"a change {REFUSED}: serial_number") as caught:
        find_task_node(variables)
    assert caught.value.where.startswith("inventory/h100-a.yml:")
    assert find_task_node({**variables, "ansible_check_mode": True})[1].name == NODE


def test_an_action_on_such_a_node_fails_with_the_line_and_never_runs(real: Fleet, tmp_path: Path) -> None:
    runs: list[str] = []
    action = SimpleNamespace(run=lambda ctx, intent: runs.append(intent.node))
    attempt = steps._attempt(context(real, tmp_path), action, wish("powercycle", NODE))
    assert f"the action powercycle {REFUSED}: serial_number: 'A520112X4400003'" in attempt.error
    assert "inventory/h100-a.yml:" in attempt.error
    assert steps._attempt(context(replace(real, is_lab=True), tmp_path), action, wish("powercycle", NODE)).error == ""
    assert runs == [NODE]


def test_a_search_on_the_controller_vouches_for_no_real_node(real: Fleet, tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    words = ["collectives", "run", str(file), "n0003", "n0004", "--workload", "virtual", "--allocated"]
    answer = CliRunner().invoke(app, [*words, "--fleet", str(ROOT), "--context", "fleet"])
    assert f"a search {REFUSED}: CollectiveWorkload virtual" in str(answer.exception)
    assert not file.exists()
    line = SimpleNamespace(schedule=SimpleNamespace(search=SimpleNamespace(workload="virtual")), name="collectives")
    task: Any = SimpleNamespace(line=line, slot=datetime(2026, 11, 25, tzinfo=UTC))
    with pytest.raises(AssayError, match=f"a search {REFUSED}"):
        search_collectives(context(real, tmp_path), task)  # type: ignore[arg-type]  # it asks nothing more of it
