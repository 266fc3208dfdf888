"""zap, with the real playbook and the real ansible-runner, against the lab's BMC."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.actions import zap
from assay.act.remedies.playbook_environment import pass_environment
from assay.model.errors import AssayError
from assay.model.specs.credential_reference import CredentialReference
from tests.support.lab_room import Room, wish


@pytest.mark.slow
def test_old_firmware_is_brought_to_the_bundle_and_read_back(room: Room):
    room.fresh("n0003", BMC="01.00.00", HGX_FW_GPU_SXM_3="96.00.00.00.00", HCA_7="28.0.0")
    context, intent = room.context(), wish("zap", "n0003")
    seen = zap.before(context, intent)
    assert not zap.verify(context, intent).done

    zap.run(context, intent)

    proof = zap.verify(context, intent)
    assert proof.done, proof.reason
    assert seen["firmware"]["BMC"] == "01.00.00"
    assert proof.facts["firmware"]["BMC"] == room.fleet.bundle_of("n0003").components[0].version
    assert sorted(room.flashes("n0003")) == ["bmc", "gpu", "hca"], "what was equal is left alone"
    assert any("Firmware of the node's bundle" in line for line in room.told)
    assert any("n0003: bmc: pushes bmc-01.05.11.bin, because BMC is 01.00.00" in line for line in room.told)


@pytest.mark.slow
def test_check_mode_says_what_would_change_and_changes_nothing(room: Room):
    room.fresh("n0003", BIOS="2.0.0")

    said = _playbook(room, "n0003", "--check", "--diff")

    assert "changed=1" in said.stdout
    assert "after: bios: the bundle (reset: host)" in said.stdout
    assert "-BIOS: 2.0.0\n+BIOS: 2.7.3\n" in said.stdout
    assert room.flashes("n0003") == []


@pytest.mark.slow
def test_adapters_of_an_unmanaged_node_are_left_alone(room: Room):
    room.fresh("n0017", BIOS="2.0.0", HCA_0="28.0.0")
    context, intent = room.context(), wish("zap", "n0017")

    zap.run(context, intent)

    assert zap.verify(context, intent).done
    assert room.flashes("n0017") == ["bios"]
    assert room.state("n0017")["firmware"]["HCA_0"] == "28.0.0"


@pytest.mark.slow
def test_an_update_that_fails_is_trouble_in_the_bmcs_words_and_the_next_run_pushes_again(room: Room):
    room.fresh("n0003", BIOS="2.0.0")
    room.change("n0003", lambda state: state["fails"]["flash"].append("bios"))
    context, intent = room.context(), wish("zap", "n0003")

    with pytest.raises(AssayError, match="Verification of bios failed"):
        zap.run(context, intent)
    assert zap.verify(context, intent).done is False

    zap.run(context, intent)
    assert zap.verify(context, intent).done
    assert room.flashes("n0003") == ["bios", "bios"]


@pytest.mark.slow
def test_what_was_written_and_waits_for_its_reset_is_reset_and_not_written_again(room: Room):
    room.fresh("n0003", BIOS="2.0.0")
    from assay.act.remedies.bmc_updates import make_bmc_connector
    from assay.act.remedies.firmware_file import find_image

    node, (bios,) = room.fleet.nodes["n0003"], _components(room, "bios")
    with make_bmc_connector(node, room.fleet)() as bmc:
        update = bmc.push(bios, find_image(room.fleet, room.fleet.bundle_of("n0003"), bios)[0])
        while bmc.read_update(update).running:
            room.world.clock().sleep(5)

    zap.run(room.context(), wish("zap", "n0003"))

    assert zap.verify(room.context(), wish("zap", "n0003")).done
    assert room.flashes("n0003") == ["bios"]


@pytest.mark.slow
def test_a_run_that_finds_all_equal_changes_nothing_and_leaves_no_secret_behind(
    room: Room, monkeypatch: pytest.MonkeyPatch
):
    room.fresh("n0003")
    monkeypatch.setenv("LAB_SECRET", "operator:do-not-write-this-down")
    settings = room.fleet.nodes["n0004"].settings
    settings = settings.model_copy(update={"bmc_credentials": CredentialReference(env="LAB_SECRET")})
    spare = replace(room.fleet.nodes["n0004"], settings=settings)
    context = replace(room.context(), fleet=replace(room.fleet, nodes={**room.fleet.nodes, "n0004": spare}))

    zap.run(context, wish("zap", "n0003"))

    assert room.flashes("n0003") == []
    assert room.state("n0003")["boot"]["count"] == 1
    files = [path for path in (room.context().home / "runner").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"do-not-write-this-down" in path.read_bytes()]


def test_secrets_reach_the_program_and_nothing_else_tells_them():
    show = [
        sys.executable,
        "-c",
        "import os; print(sorted(n for n in os.environ if n in ('WORD', 'ASSAY_HANDED_OVER')))",
    ]
    with pass_environment({"WORD": "xyzzy"}) as place:
        command = [sys.executable, "-m", "assay.act.remedies.playbook_environment", *show]
        told = subprocess.run(command, env=os.environ | place, capture_output=True, text=True, check=True)
    assert "xyzzy" not in str(place)
    assert told.stdout.strip() == "['WORD']"


def test_what_anybody_may_see_of_an_environment_is_where_things_are():
    with pass_environment({"PATH": "/bin", "HOME": "/root", "VAULT_TOKEN": "xyzzy", "ASSAY_BMC": "xyzzy"}) as shown:
        assert set(shown) == {"PATH", "HOME", "ASSAY_HANDED_OVER"}


def test_a_program_whose_giver_is_gone_never_starts():
    with pass_environment({"WORD": "xyzzy"}) as place:
        pass
    command = [
        sys.executable,
        "-m",
        "assay.act.remedies.playbook_environment",
        sys.executable,
        "-c",
        "print('started')",
    ]
    told = subprocess.run(command, env=os.environ | place, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (1, "")
    assert "the process that started this playbook is gone" in told.stderr


def test_a_playbook_that_is_not_there_is_trouble_with_its_name(room: Room):
    from assay.act.remedies.ansible_playbook import run_playbook

    with pytest.raises(AssayError, match=r"playbooks/gone\.yml"):
        run_playbook(room.context(), wish("zap", "n0003"), "gone.yml", {})


@pytest.mark.slow
def test_the_plugins_are_documented_for_ansible_doc(room: Room):
    program = Path(sys.executable).parent / "ansible-doc"
    path = {"ANSIBLE_COLLECTIONS_PATH": str(room.root / "playbooks" / "collections")}
    told = subprocess.run(
        [program, "-t", "module", "--json", "assay.fleet.firmware", "assay.fleet.power"],
        env=os.environ | path,
        capture_output=True,
        text=True,
        check=True,
    )
    options = {name: set(page["doc"]["options"]) for name, page in json.loads(told.stdout).items()}
    assert options == {
        "assay.fleet.firmware": {"components", "deadline_s", "read_back_s", "steady_s"},
        "assay.fleet.power": {"reset", "unless_after", "wait_s"},
    }


def _components(room: Room, *names: str):
    return [component for component in room.fleet.bundle_of("n0003").components if component.name in names]


def _playbook(room: Room, node: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the playbook as a person would, without assay."""
    program = Path(sys.executable).parent / "ansible-playbook"
    command = [program, "-i", "inventory", "playbooks/zap.yml", "--limit", node, *options]
    environment = os.environ | {"ASSAY_CONTEXT": "lab"}
    return subprocess.run(command, cwd=room.root, capture_output=True, text=True, check=True, env=environment)
