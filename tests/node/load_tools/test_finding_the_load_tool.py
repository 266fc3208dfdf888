"""How the load tool is found on a node as its pool declares it, and what a node that lacks something is told.

Container runtimes are small programs here that answer as the real ones do; test_load_in_podman.py runs a real one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.model.reading import parse_reading
from assay.node.load_tools.load_delivery import (
    ENDS_WITH_INPUT,
    LoadCommand,
    _ask,
    build_apptainer_command,
    build_docker_command,
    build_pyxis_command,
    explain_complaint,
    find_container,
    find_load_tool,
    read_site_variables,
)
from assay.node.probe.node_access import NodeRoot

IMAGE = f"registry.example.org/site/assay-load@sha256:{64 * 'a'}"
GPU = "proc/driver/nvidia/gpus/0000:1b:00.0"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a node with one GPU, whose programs are in its folder bin alone."""
    (tmp_path / GPU).mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in [name for name in os.environ if name.startswith(("SLURM", "CONTAINERS_", "XDG_", "ASSAY_"))]:
        monkeypatch.delenv(name)
    return tmp_path


def program(node: Path, name: str, script: str) -> None:
    """Install a program on the node."""
    file = node / "bin" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def found(node: Path, **declared: Any) -> LoadCommand | str:
    """Return the tool as it was found, or the reading instead: `absent: …`, `failed: …`."""
    tool = find_load_tool(NodeRoot(str(node)), json.dumps(declared) if declared else "")
    if isinstance(tool, LoadCommand):
        return tool
    reading = parse_reading(tool)
    assert reading is not None
    return f"{reading.kind}: {reading.reason}"


def tool(node: Path, **declared: Any) -> LoadCommand:
    """Return the tool, which must be found."""
    answer = found(node, **declared)
    assert isinstance(answer, LoadCommand), answer
    return answer


def test_without_a_declaration_the_tool_is_in_the_path_or_absent(node: Path):
    assert str(found(node)).startswith("absent: assay-load is not in the PATH: install it, or declare `load`")
    program(node, "assay-load", "")
    assert found(node) == LoadCommand(("assay-load",))


def test_a_folder_on_the_node_runs_its_tool_with_the_variables_of_the_site(node: Path):
    declared: dict[str, Any] = {"way": "path", "path": "/opt/load", "environment": {"NCCL_IB_HCA": "mlx5_0,mlx5_1"}}
    assert str(found(node, **declared)).startswith("absent: /opt/load/bin/assay-load is no program on this node")
    program(node, "../opt/load/bin/assay-load", "")
    there = tool(node, **declared)
    assert there.command == (f"{node}/opt/load/bin/assay-load",)
    assert there.environment == {"NCCL_IB_HCA": "mlx5_0,mlx5_1"}


PODMAN = 'case "$1$2" in --version) echo "podman version 5.2.1";; imageexists) exit {};; *) exit 9;; esac'


def test_podman_gives_the_container_all_gpus_and_ends_it_with_its_client(node: Path):
    program(node, "podman", PODMAN.format(0))
    (node / "etc/cdi").mkdir(parents=True)
    there = tool(node, way="podman", image=IMAGE, environment={"B": "2", "A": "x y"}, mounts=["/data:/data:ro"])
    words = " ".join(there.command)
    assert words.startswith("podman run --rm --interactive --pull=never --network=host --ipc=host")
    assert "--device=nvidia.com/gpu=all --env=A --env=B --volume=/data:/data:ro --entrypoint=sh" in words
    assert there.command[-5:] == (IMAGE, "-c", ENDS_WITH_INPUT, "sh", "assay-load")
    assert (there.environment, there.keeps_input) == ({"B": "2", "A": "x y"}, True)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "absent: podman cannot be started on this node: it is not installed"),
        ('echo "podman version 3.4.4"', "failed: podman 3.4 on this node is too old: the load needs 4.1 or newer"),
        (PODMAN.format(1), f"absent: the image {IMAGE} is not on this node: bring it to the node before"),
        (PODMAN.format(125), "failed: podman does not say which images it has"),
        (PODMAN.format(0), "absent: the node does not describe nvidia.com/gpu=all in /etc/cdi or /var/run/cdi: run"),
    ],
)
def test_what_podman_lacks_is_told_with_what_to_do(node: Path, script: str | None, said: str):
    if script:
        program(node, "podman", script)
    assert str(found(node, way="podman", image=IMAGE)).startswith(said)


def test_docker_is_asked_for_the_image_and_never_pulls_it(node: Path):
    docker = 'case "$1" in --version) echo "Docker version 27.3.1, build ce12230";; image) {};; esac'
    program(node, "docker", docker.format("echo sha256:abc"))
    there = tool(node, way="docker", image=IMAGE)
    assert {"--pull=never", "--gpus=all", "--ulimit=memlock=-1"} <= set(there.command)
    program(node, "docker", docker.format('echo "Error: No such image" >&2; exit 1'))
    assert str(found(node, way="docker", image=IMAGE)).startswith(f"absent: the image {IMAGE} is not on this node")
    program(node, "docker", docker.format('echo "permission denied while trying to connect" >&2; exit 1'))
    assert str(found(node, way="docker", image=IMAGE)).startswith("failed: docker does not say which images it has")


def test_the_real_docker_takes_the_words(node: Path, monkeypatch: pytest.MonkeyPatch):
    """It comes to its daemon, which does not run here, or has no such image."""
    docker = shutil.which("docker", path="/usr/local/bin:/usr/bin:/bin")
    if not docker:
        pytest.skip("docker is not installed: apt-get install docker.io")
    declared = {"image": IMAGE, "environment": {"NCCL_DEBUG": "INFO"}, "mounts": ["/data:/data"]}
    for has_gpus in (True, False):
        _, *words = build_docker_command(declared, has_gpus=has_gpus).command
        said = subprocess.run([docker, *words], capture_output=True, text=True, check=False).stderr
        assert re.search("Cannot connect to the Docker daemon|permission denied|No such image", said), said
        wrong = subprocess.run([docker, "run", "--no-such", *words[1:]], capture_output=True, text=True, check=False)
        assert "unknown flag: --no-such" in wrong.stderr
    monkeypatch.setenv("PATH", str(Path(docker).parent))
    told = str(found(node, way="docker", image=IMAGE))
    assert told.startswith(("failed: docker does not say which images it has", f"absent: the image {IMAGE} is not")), (
        told
    )
    assert "unknown flag" not in told


def test_apptainer_runs_the_image_file_with_the_driver_of_the_node(node: Path):
    declared: dict[str, Any] = {"way": "apptainer", "image": IMAGE, "file": "/shared/load.sif"}
    assert str(found(node, **declared)).startswith("absent: apptainer is not installed on this node")
    program(node, "apptainer", "")
    assert str(found(node, **declared)).startswith("absent: the image file /shared/load.sif is not on this node")
    (node / "shared").mkdir()
    (node / "shared/load.sif").touch()
    there = tool(node, **declared, environment={"NCCL_DEBUG": "INFO"}, mounts=["/data:/data"])
    assert there.command == (
        "apptainer", "exec", "--cleanenv", "--no-home", "--nv", "--bind=/data:/data", "/shared/load.sif", "assay-load",
    )  # fmt: skip
    assert there.environment == {"APPTAINERENV_NCCL_DEBUG": "INFO"}


def test_pyxis_adds_a_step_to_the_job_that_the_probe_runs_in(node: Path, monkeypatch: pytest.MonkeyPatch):
    declared: dict[str, Any] = {"way": "pyxis", "image": IMAGE, "file": "/shared/load.sqsh"}
    assert str(found(node, **declared)).startswith("failed: the way pyxis needs a Slurm job")
    monkeypatch.setenv("SLURM_JOB_ID", "712")
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    assert found(node, **declared) == "absent: srun cannot be started on this node: it is not installed"
    program(node, "srun", "echo 'srun: fatal: Could not establish a configuration source'; exit 1")
    assert str(found(node, **declared)).startswith("failed: `srun --help` ended with 1: srun: fatal: Could not")
    program(node, "srun", "echo '  --cpus-per-task=ncpus'")
    assert str(found(node, **declared)).startswith("absent: Slurm on this node has no pyxis")
    program(node, "srun", "echo '      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH'")
    assert str(found(node, **declared)).startswith("absent: the image file /shared/load.sqsh is not on this node")
    (node / "shared").mkdir()
    (node / "shared/load.sqsh").touch()
    there = tool(node, **declared, environment={"B": "1", "A": "2"}, mounts=["/a:/b", "/c:/d:ro"])
    assert "--jobid=712 --nodelist=n7 --nodes=1 --ntasks=1 --overlap" in " ".join(there.command)
    assert {"--container-image=/shared/load.sqsh", "--container-mounts=/a:/b,/c:/d:ro", "--container-env=A,B"} <= set(
        there.command
    )
    assert there.environment == {"B": "1", "A": "2", "SLURM_JOB_ID": "712", "SLURMD_NODENAME": "n7"}


def test_a_real_slurm_without_pyxis_is_told_so(node: Path, monkeypatch: pytest.MonkeyPatch):
    srun = shutil.which("srun", path="/usr/local/bin:/usr/bin:/bin")
    if not srun:
        pytest.skip("srun is not installed: apt-get install slurm-client, or sh tools/system-packages as root")
    monkeypatch.setenv("PATH", str(Path(srun).parent))
    monkeypatch.setenv("SLURM_JOB_ID", "712")
    settings = "ClusterName=x\nSlurmctldHost=localhost\nAuthType=auth/none\nCredType=cred/none\nNodeName=n1\n"
    (node / "slurm.conf").write_text(f"{settings}PartitionName=p Nodes=n1\n")
    monkeypatch.setenv("SLURM_CONF", str(node / "slurm.conf"))
    assert "Usage: srun" in _ask(["srun", "--help"])[1]
    told = found(node, way="pyxis", image=IMAGE, file="/shared/load.sqsh")
    assert told == "absent: Slurm on this node has no pyxis: srun does not know --container-image"


def parse_strictly(command: Sequence[str], options: Mapping[str, bool]) -> argparse.Namespace:
    """Parse words as a program does that has these options (with a value or without), and refuses others."""
    parser = argparse.ArgumentParser(prog=command[0], allow_abbrev=False, exit_on_error=False)
    for name, has_value in options.items():
        parser.add_argument(name, action="append" if has_value else "store_true")
    known, others = parser.parse_known_args(command[1:])
    assert not [word for word in others if word.startswith("-")], others
    return argparse.Namespace(words=others, **vars(known))


APPTAINER_EXEC = {"--bind": True, "--env": True} | dict.fromkeys(("--cleanenv", "--no-home", "--nv", "--rocm"), False)
"""The flags of `exec`, and whether they have a value: apptainer v1.4.0, cmd/internal/cli/action_flags.go."""
PYXIS = {
    "--container-image", "--container-mounts", "--container-workdir", "--container-name", "--container-env",
    "--no-container-mount-home", "--container-mount-home", "--container-remap-root", "--no-container-remap-root",
}  # fmt: skip
"""The options of pyxis 0.21, args.c."""


def test_apptainer_would_take_the_words():
    declared = {
        "file": "/shared/load.sif",
        "environment": {"NCCL_DEBUG": "INFO"},
        "mounts": ["/data:/data", "/a:/b:ro"],
    }
    for has_gpus in (True, False):
        taken = build_apptainer_command(declared, has_gpus=has_gpus)
        assert taken.command[1] == "exec"
        read = parse_strictly(taken.command[1:], APPTAINER_EXEC)
        assert (read.words, read.nv) == (["/shared/load.sif", "assay-load"], has_gpus)
        assert all(re.fullmatch(r"/[^:,]+(:/[^:,]+(:(ro|rw))?)?", mount) for mount in read.bind)


def ask_srun(words: Sequence[str], folder: Path) -> str:
    """Return what srun with pyxis says to words: options of pyxis are read here, the real srun judges the others."""
    srun = shutil.which("srun", path="/usr/local/bin:/usr/bin:/bin")
    if not srun:
        pytest.skip("srun is not installed: apt-get install slurm-client, or sh tools/system-packages as root")
    end = words.index("--")
    for word in words[:end]:
        name, _, text = word.partition("=")
        mounts = text.split(",") if name == "--container-mounts" else []
        if not all(re.fullmatch(r"/[^:]+:/[^:]+(:[a-z+]+)?", mount) for mount in mounts):
            return f"pyxis: invalid mount: {text}"
    others = [word for word in words[:end] if word.partition("=")[0] not in PYXIS]
    settings = "ClusterName=x\nSlurmctldHost=localhost\nAuthType=auth/none\nCredType=cred/none\nNodeName=n1\n"
    (folder / "slurm.conf").write_text(f"{settings}PartitionName=p Nodes=n1\n")
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    command = [srun, "--test-only", *others, *words[end:]]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("wrong", ["", "--container-mount", "--no-such"])
def test_srun_with_pyxis_would_take_the_words(node: Path, wrong: str):
    declared = {"file": "/shared/load.sqsh", "environment": {"A": "1", "B": "2"}, "mounts": ["/a:/b", "/c:/d:ro"]}
    _, *words = build_pyxis_command(declared, "712", "n1").command
    end = words.index("--")
    said = ask_srun([*words[:end], *([wrong] if wrong else []), *words[end:]], node)
    assert "invalid mount" not in said
    assert ("unrecognized option" in said) == bool(wrong), said


def test_the_variables_of_the_site_are_for_the_nodes_own_tools_too():
    assert read_site_variables('{"way": "path", "environment": {"NCCL_DEBUG": "INFO"}}') == {"NCCL_DEBUG": "INFO"}
    assert [read_site_variables(text) for text in ("", "{", "[]", "{}")] == [{}, {}, {}, {}]


def test_a_pod_with_another_image_than_the_declared_one_is_told_so(node: Path):
    assert str(found(node, way="kubernetes", image=IMAGE)).endswith(f"the pod does not run the image {IMAGE}")
    program(node, "assay-load", "")
    assert tool(node, way="kubernetes", image=IMAGE, environment={"A": "1"}).environment == {"A": "1"}


def test_a_way_that_this_probe_does_not_know_and_nonsense_are_failed_readings(node: Path):
    assert str(found(node, way="teleport")).startswith("failed: this probe does not know the way teleport of the load")
    for nonsense in ("{", "[]", '"x"'):
        reading = parse_reading(find_load_tool(NodeRoot(str(node)), nonsense))  # type: ignore[arg-type]
        assert reading is not None
        assert reading.kind == "failed"


@pytest.mark.parametrize(
    ("printed", "advice"),
    [
        ("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", "nvidia-ctk cdi generate"),
        ('could not select device driver "" with capabilities: [[gpu]]', "install NVIDIA's container toolkit"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0", "the driver is too old"),
        ("INFO: Could not find any nv files on this host!", "found no NVIDIA driver"),
        ("exec /usr/bin/sh: exec format error", "another processor architecture"),
        ("sh: 1: assay-load: not found", "no assay-load in its PATH"),
        ("all is well", ""),
    ],
)
def test_what_runtimes_print_is_explained(printed: str, advice: str):
    assert advice in explain_complaint(printed)


def test_a_program_of_the_site_stands_where_the_load_tool_would(node: Path):
    program(node, "podman", PODMAN.format(0))
    (node / "etc/cdi").mkdir(parents=True)
    start = find_container(NodeRoot(str(node)), {"way": "podman", "image": IMAGE}, ["bash", "/train.sh"])
    assert isinstance(start, LoadCommand)
    assert (start.command[-3:], start.keeps_input) == (("sh", "bash", "/train.sh"), True)
    program(node, "podman", PODMAN.format(1))
    lack = find_container(NodeRoot(str(node)), {"way": "podman", "image": IMAGE}, ["bash"])
    assert "is not on this node" in lack["absent"]
