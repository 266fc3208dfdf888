"""The command that starts `assay-load` in a container, for each container runtime. Pure functions.

No command pulls an image. The values of variables are in the environment of the command, never in its words. What the
command starts ends when its standard input ends: Docker and Podman run containers outside the process group of their
client, and Slurm runs a step outside that of srun; so a killed client would leave the load behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

TOOL = "assay-load"
ENDS_WITH_INPUT = (
    'exec 3<&0; "$@" </dev/null 3<&- & child=$!; (cat <&3 >/dev/null; kill -9 $child 2>/dev/null) & '
    "exec 3<&-; wait $child"
)
"""For `sh -c`: runs its arguments until they end or the standard input ends; exits as they did."""
CDI_GPUS = "nvidia.com/gpu=all"


class LoadCommand(NamedTuple):
    """How to start the tool: the words to which its own arguments are added, and variables for their environment.

    `keeps_input`: the standard input must be a pipe that stays open as long as the tool is to run.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    keeps_input: bool = False


def build_docker_command(declared: Mapping[str, Any], *, has_gpus: bool) -> LoadCommand:
    """Return the command for Docker 20.10 or newer, with NVIDIA's container toolkit."""
    locked = "--ulimit=memlock=-1"  # RDMA locks memory; Podman without root may not raise it
    return _build_engine_command("docker", declared, [locked, "--gpus=all"] if has_gpus else [locked])


def build_podman_command(declared: Mapping[str, Any], *, has_gpus: bool) -> LoadCommand:
    """Return the command for Podman 4.1 or newer, which knows the GPUs by their CDI names."""
    label = "--security-opt=label=disable"  # SELinux: the container may open the GPUs' device files
    return _build_engine_command("podman", declared, [label, f"--device={CDI_GPUS}"] if has_gpus else [label])


def _build_engine_command(engine: str, declared: Mapping[str, Any], options: Sequence[str]) -> LoadCommand:
    environment = dict(declared.get("environment") or {})
    shared = ["--network=host", "--ipc=host", "--log-driver=none"]
    variables = [f"--env={name}" for name in sorted(environment)]
    mounts = [f"--volume={mount}" for mount in declared.get("mounts") or ()]
    words = [engine, "run", "--rm", "--interactive", "--pull=never", *shared, *options, *variables, *mounts]
    start = ["--entrypoint=sh", declared["image"], "-c", ENDS_WITH_INPUT, "sh", TOOL]
    return LoadCommand((*words, *start), environment, keeps_input=True)


def build_apptainer_command(declared: Mapping[str, Any], *, has_gpus: bool) -> LoadCommand:
    """Return the command for Apptainer, which runs an image file in the process group of its caller."""
    environment = {f"APPTAINERENV_{name}": text for name, text in (declared.get("environment") or {}).items()}
    mounts = [f"--bind={mount}" for mount in declared.get("mounts") or ()]
    options = ["--cleanenv", "--no-home", *(["--nv"] if has_gpus else []), *mounts]
    return LoadCommand(("apptainer", "exec", *options, declared["file"], TOOL), environment)


def build_pyxis_command(declared: Mapping[str, Any], job: str, node: str) -> LoadCommand:
    """Return the command that adds a step to the Slurm job `job` on its node; pyxis runs the step in a container."""
    environment = dict(declared.get("environment") or {})
    where = [f"--jobid={job}", *([f"--nodelist={node}"] if node else []), "--nodes=1", "--ntasks=1", "--overlap"]
    options = [f"--container-image={declared['file']}", "--no-container-mount-home"]
    mounts, names = declared.get("mounts") or (), sorted(environment)
    options += [f"--container-mounts={','.join(mounts)}"] if mounts else []
    options += [f"--container-env={','.join(names)}"] if names else []
    words = ["srun", "--quiet", "--unbuffered", *where, *options, "--", "sh", "-c", ENDS_WITH_INPUT, "sh", TOOL]
    return LoadCommand(tuple(words), environment, keeps_input=True)
