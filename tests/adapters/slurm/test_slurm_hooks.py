"""The hooks in real slurmds: a fault drains the node, what could not be told does not, and neither is silent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.cli.verbs.slurm import build_hook_config
from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from assay.node.agent.pack import SLURM_HOOK
from assay.node.agent.slurm_hook import drain_node
from assay.node.probe.pack import build_pack
from tests.support.places import ROOT
from tests.support.slurm_cluster import Cluster, cluster, needs_slurm, said, until
from tests.support.slurm_room import SETTINGS, adapter, by_hand, reason, state, submitted

pytestmark = needs_slurm
HOOKS = """
HealthCheckProgram=$FOLDER/assay-health
HealthCheckInterval=2
HealthCheckNodeState=ANY
Prolog=$FOLDER/assay-prolog
Epilog=$FOLDER/assay-epilog
"""
NODES = ("n0001", "n0002", "n0003", "n0004")


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(ROOT)


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory, fleet: Fleet) -> Iterator[Cluster]:
    """A Slurm whose nodes have our hooks as docs/slurm.md installs them, each node with a file system of its own."""
    folder = tmp_path_factory.mktemp("hooked")
    (folder / "assay-slurm-hook.pyz").write_bytes(build_pack(SLURM_HOOK))
    text = (ROOT / "deploy/assay-slurm-hook").read_text()
    text = text.replace("/etc/slurm/slurm.conf", f"{folder}/slurm.conf").replace("/etc/assay-agent", str(folder))
    text = text.replace("slurm-hook.json", "slurm-hook.$SLURMD_NODENAME.json")
    for hook in ("health", "prolog", "epilog"):
        (folder / f"assay-{hook}").write_text(text)
        (folder / f"assay-{hook}").chmod(0o755)
    for name in NODES:
        equip(folder, fleet, name)
    with cluster(folder, *NODES, more=SETTINGS.replace("MessageTimeout=2\n", "") + HOOKS) as running:
        yield running


def equip(folder: Path, fleet: Fleet, name: str) -> None:
    """Give a node its orders, and all that they name."""
    (policy,) = fleet.policies.values()
    orders = build_hook_config(fleet, policy, fleet.nodes["n0001"])
    orders |= {"root": str(folder / name), "log": str(folder / f"{name}.told")}
    for address in orders["gpus"].values():
        device = folder / name / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        (device / "config").write_bytes(b"\xde\x10")
    for hca in orders["hcas"]:
        port = folder / name / "sys/class/infiniband" / hca / "ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text("4: ACTIVE\n")
    (folder / f"slurm-hook.{name}.json").write_text(json.dumps(orders))


def told(running: Cluster, name: str) -> str:
    """Return what the hooks of a node wrote down."""
    file = running.folder / f"{name}.told"
    return file.read_text() if file.exists() else ""


def test_a_gpu_off_the_bus_drains_the_node_within_moments_with_our_reason(hooked: Cluster):
    assert told(hooked, "n0001") == ""
    (hooked.folder / "n0001/sys/bus/pci/devices/0000:61:00.0/config").write_bytes(b"\xff\xff")
    until(lambda: reason("n0001"))
    assert state("n0001") == "drained"
    assert adapter().read_cordon_reason("n0001") == "assay: gpu.missing: gpu3 at 0000:61:00.0 fell off the PCI bus"
    assert "gpu3 at 0000:61:00.0" in told(hooked, "n0001")

    (hooked.folder / "n0001/sys/bus/pci/devices/0000:61:00.0/config").write_bytes(b"\xde\x10")
    until(lambda: adapter().uncordon("n0001") or state("n0001") == "idle")  # a check may have begun before the repair
    time.sleep(2.5)
    assert reason("n0001") == ""


def test_the_real_scontrol_takes_the_words_of_a_hook_and_refuses_an_unknown_node(hooked: Cluster):
    """A hook has an environment of its own from slurmd: here its function runs in the test's."""
    assert drain_node("n0002", "gpu.missing: gpu1") == "n0002 drains"
    assert adapter().read_cordon_reason("n0002") == "assay: gpu.missing: gpu1"
    assert drain_node("n0002", "gpu.missing: gpu2").startswith("n0002 is closed already: State=IDLE+DRAIN")
    assert adapter().read_cordon_reason("n0002") == "assay: gpu.missing: gpu1"
    with pytest.raises(OSError, match="scontrol: Node nobody not found"):
        drain_node("nobody", "gpu.missing: gpu1")
    adapter().uncordon("n0002")
    until(lambda: state("n0002") == "idle")


@pytest.mark.slow
def test_what_cannot_be_told_is_told_and_drains_nothing(hooked: Cluster):
    (hooked.folder / "n0002/sys/class/infiniband/mlx5_4/ports/1/state").unlink()
    until(lambda: "cannot tell the state of mlx5_4" in told(hooked, "n0002"))
    until(lambda: "cannot tell the state of mlx5_4" in (hooked.folder / "n0002.log").read_text())
    assert reason("n0002") == ""

    (hooked.folder / "slurm-hook.n0002.json").write_text("{")
    until(lambda: "cannot tell anything" in (hooked.folder / "n0002.log").read_text())
    number = submitted("llama", "n0002", 0)
    until(lambda: not said("squeue", "--noheader", f"--job={number}"))
    assert reason("n0002") == "", "a prolog that cannot tell lets the job start"


def test_a_drain_by_others_is_left_to_them(hooked: Cluster):
    by_hand("n0003", state="drain", reason="bob: switch")
    (hooked.folder / "n0003/sys/class/infiniband/mlx5_1/ports/1/state").write_text("1: DOWN\n")
    until(lambda: "closed already" in told(hooked, "n0003"))
    assert reason("n0003") == "bob: switch"


def test_a_prolog_that_finds_the_node_unfit_drains_it_and_the_job_goes_back(hooked: Cluster):
    (hooked.folder / "assay-health").chmod(0o644)  # so that the prolog is the first to see it
    try:
        device = hooked.folder / "n0004/sys/bus/pci/devices/0000:1b:00.0"
        (device / "config").unlink()
        device.rmdir()
        number = submitted("llama", "n0004", 60)
        until(lambda: reason("n0004"))
        assert adapter().read_cordon_reason("n0004") == "assay: gpu.missing: gpu0 at 0000:1b:00.0 is not on the PCI bus"
        until(lambda: said("squeue", "--noheader", f"--job={number}", "--format=%T") == "PENDING")
        said("scancel", number)
    finally:
        (hooked.folder / "assay-health").chmod(0o755)


@pytest.mark.slow
def test_an_epilog_says_which_process_of_the_job_still_holds_a_gpu(hooked: Cluster):
    gpu = hooked.folder / "dev/nvidia5"
    gpu.parent.mkdir()
    gpu.touch()
    hold = f"setsid sh -c 'exec 9<{gpu}; echo $$ > {hooked.folder}/held; sleep 30' > /dev/null 2>&1 < /dev/null &"
    number = said("sbatch", "--parsable", "--nodelist=n0001", "--output=/dev/null", f"--wrap={hold} sleep 1")
    until(lambda: "gpu.process.left" in told(hooked, "n0001"))
    pid = (hooked.folder / "held").read_text().strip()
    assert f"({pid}) holds nvidia5 open" in told(hooked, "n0001")
    until(lambda: said("squeue", "--noheader", f"--job={number}") == "")
    assert reason("n0001") == "", "no class of the catalogue drains for it"
