"""How to start `assay-load` on this node, as the inventory declares it (`load`), or what the node lacks for it.

The declaration is JSON: `way`, and `path`, `image`, `file`, `environment` and `mounts` as the way needs them. Without
one, the tool is the `assay-load` in the PATH.

No command pulls an image. The values of variables are in the environment of the command, never in its words. What the
command starts ends when its standard input ends: Docker and Podman run containers outside the process group of their
client, and Slurm runs a step outside that of srun; so a killed client would leave the load behind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from assay.model.reading import ReadingTree, absent, failed
from assay.node.load_tools.tool_call import quote_text
from assay.node.probe.gpu.gpu_list import count_gpus
from assay.node.probe.node_access import NodeRoot

TOOL = "assay-load"
ENDS_WITH_INPUT = (
    'exec 3<&0; "$@" </dev/null 3<&- & child=$!; (cat <&3 >/dev/null; kill -9 $child 2>/dev/null) & '
    "exec 3<&-; wait $child"
)
"""For `sh -c`: runs its arguments until they end or the standard input ends; exits as they did."""
CDI_GPUS = "nvidia.com/gpu=all"
DECLARATION_VARIABLE = "ASSAY_LOAD"
"""The environment variable with the declaration; `--load` of the probe sets it."""
QUESTION_S = 20.0
NEEDED_BY_WAYS = {"pyxis": ("SLURM",), "podman": ("XDG_RUNTIME_DIR", "CONTAINERS_"), "docker": ("DOCKER_",)}
"""The variables of the probe's own environment that a way needs, by how their names begin. A tool gets no others."""
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
VERSION = re.compile(r"(\d+)\.(\d+)")
OLDEST = {"podman": (4, 1), "docker": (20, 10)}
GET_IMAGE = "bring it to the node before, a visit pulls nothing (docs/load-tools.md)"
COMPLAINTS = (
    (r"unresolvable CDI devices", "run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` on the node"),
    (r"could not select device driver", "install NVIDIA's container toolkit, then restart Docker"),
    (r"Could not find any nv files", "Apptainer's --nv found no NVIDIA driver on the node"),
    (r"unsatisfied condition: (cuda|driver)|driver version is insufficient", "the driver is too old for the image"),
    (r"[Ee]xec format error", "the image is for another processor architecture"),
    (r"image not known|No such image|ErrImageNeverPull", GET_IMAGE),
    (r"pyxis: .*", "see the log of slurmd on the node"),
    (r"executable file .* not found|assay-load: not found", "the image has no assay-load in its PATH"),
)
"""What container runtimes print, by pattern, and what to do about it."""


class LoadCommand(NamedTuple):
    """How to start the tool: the words to which its own arguments are added, and variables for their environment.

    `keeps_input`: the standard input must be a pipe that stays open as long as the tool is to run.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    keeps_input: bool = False


def find_load_tool(root: NodeRoot, text: str | None = None) -> LoadCommand | ReadingTree:
    """Return how to start the tool on this node, or a leaf (absent or failed) with what the node lacks for it."""
    text = os.environ.get(DECLARATION_VARIABLE, "") if text is None else text
    try:
        declared = json.loads(text) if text else {}
        way = declared.get("way", "")
    except (ValueError, AttributeError):
        return failed(f"the declaration of the load cannot be read: {text[:80]!r}")
    if not way:
        return _find_in_path("install it, or declare `load` for the pool (docs/load-tools.md)")
    if way not in WAYS:
        return failed(f"this probe does not know the way {way} of the load; it knows {', '.join(WAYS)}")
    return _find_way(root, declared)


def find_container(root: NodeRoot, declared: Mapping[str, Any], words: Sequence[str]) -> LoadCommand | ReadingTree:
    """Return how to start a program of the site (`words`) in its own container, or what the node lacks for that."""
    start = _find_way(root, declared)
    return start._replace(command=(*start.command[:-1], *words)) if isinstance(start, LoadCommand) else start


def _find_way(root: NodeRoot, declared: Mapping[str, Any]) -> LoadCommand | ReadingTree:
    """Return the command of a way, whose last word is the load tool."""
    way = declared["way"]
    start = WAYS[way](root, declared)
    if not isinstance(start, LoadCommand):
        return start
    needed = {name: text for name, text in os.environ.items() if name.startswith(NEEDED_BY_WAYS.get(way, ()))}
    return start._replace(environment={**needed, **start.environment})


def read_site_variables(text: str) -> dict[str, str]:
    """Return the variables of the site in a declaration, for the node's own tools too; none if it has none."""
    try:
        return dict(json.loads(text).get("environment") or {}) if text else {}
    except (ValueError, AttributeError, TypeError):
        return {}


def explain_complaint(text: str) -> str:
    """Return what to do about what a container runtime printed, "" if nothing is known about it."""
    return next((advice for pattern, advice in COMPLAINTS if re.search(pattern, text)), "")


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
    mounts = declared.get("mounts") or ()
    names = sorted(environment)
    options += [f"--container-mounts={','.join(mounts)}"] if mounts else []
    options += [f"--container-env={','.join(names)}"] if names else []
    words = ["srun", "--quiet", "--unbuffered", *where, *options, "--", "sh", "-c", ENDS_WITH_INPUT, "sh", TOOL]
    return LoadCommand(tuple(words), environment, keeps_input=True)


def _find_in_path(advice: str) -> LoadCommand | ReadingTree:
    return LoadCommand((TOOL,)) if shutil.which(TOOL) else absent(f"{TOOL} is not in the PATH: {advice}")


def _find_path(root: NodeRoot, declared: Mapping[str, Any]) -> LoadCommand | ReadingTree:
    tool = f"{declared['path'].rstrip('/')}/bin/{TOOL}"
    if not os.access(root.local_path(tool), os.X_OK):
        return absent(f"{tool} is no program on this node: put the folder there (docs/load-tools.md)")
    return LoadCommand((root.local_path(tool),), declared.get("environment") or {})


def _find_kubernetes(root: NodeRoot, declared: Mapping[str, Any]) -> LoadCommand | ReadingTree:
    del root
    start = _find_in_path(f"the pod does not run the image {declared['image']}")
    if not isinstance(start, LoadCommand):
        return start
    return start._replace(environment=declared.get("environment") or {})


def _find_podman(root: NodeRoot, declared: Mapping[str, Any]) -> LoadCommand | ReadingTree:
    has_gpus = count_gpus(root) > 0
    lack = _find_lack_of_engine("podman", ["podman", "image", "exists"], declared)
    if lack is None and has_gpus and not any(map(root.exists, CDI_FOLDERS)):
        lack = absent(f"the node does not describe {CDI_GPUS} in {' or '.join(CDI_FOLDERS)}: {COMPLAINTS[0][1]}")
    return lack or build_podman_command(declared, has_gpus=has_gpus)


def _find_docker(root: NodeRoot, declared: Mapping[str, Any]) -> LoadCommand | ReadingTree:
    lack = _find_lack_of_engine("docker", ["docker", "image", "inspect", "--format={{.Id}}"], declared)
    return lack or build_docker_command(declared, has_gpus=count_gpus(root) > 0)


def _find_apptainer(root: NodeRoot, declared: Mapping[str, Any]) -> LoadCommand | ReadingTree:
    if not shutil.which("apptainer"):
        return absent("apptainer is not installed on this node: install it, or choose another way")
    return _find_lack_of_file(root, declared) or build_apptainer_command(declared, has_gpus=count_gpus(root) > 0)


def _find_pyxis(root: NodeRoot, declared: Mapping[str, Any]) -> LoadCommand | ReadingTree:
    job = os.environ.get("SLURM_JOB_ID", "")
    if not job:
        return failed("the way pyxis needs a Slurm job, and the probe does not run in one: use `transport: slurm`")
    code, usage = _ask(["srun", "--help"])
    if code is None:
        return absent(f"srun cannot be started on this node: {usage}")
    if code:
        return failed(f"`srun --help` ended with {code}: {quote_text(usage)}")
    if "--container-image" not in usage:
        return absent("Slurm on this node has no pyxis: srun does not know --container-image")
    node = os.environ.get("SLURMD_NODENAME", "")
    return _find_lack_of_file(root, declared) or build_pyxis_command(declared, job, node)


WAYS: dict[str, Callable[[NodeRoot, Mapping[str, Any]], LoadCommand | ReadingTree]] = {
    "path": _find_path,
    "podman": _find_podman,
    "docker": _find_docker,
    "apptainer": _find_apptainer,
    "pyxis": _find_pyxis,
    "kubernetes": _find_kubernetes,
}


def _find_lack_of_engine(engine: str, has_image: Sequence[str], declared: Mapping[str, Any]) -> ReadingTree | None:
    """Return what an engine lacks: itself, its age, or the image."""
    code, text = _ask([engine, "--version"])
    if code is None:
        return absent(f"{engine} cannot be started on this node: {text}")
    version = VERSION.search(text)
    oldest = OLDEST[engine]
    if version and tuple(map(int, version.groups())) < oldest:
        needed = ".".join(map(str, oldest))
        return failed(f"{engine} {version[0]} on this node is too old: the load needs {needed} or newer")
    code, text = _ask([*has_image, declared["image"]])
    if code == 0:
        return None
    if code is None or (code == 125 or "permission denied" in text or "Cannot connect" in text):
        return failed(f"{engine} does not say which images it has: {text}")
    return absent(f"the image {declared['image']} is not on this node: {GET_IMAGE}")


def _find_lack_of_file(root: NodeRoot, declared: Mapping[str, Any]) -> ReadingTree | None:
    if root.exists(declared["file"]):
        return None
    return absent(f"the image file {declared['file']} is not on this node: {GET_IMAGE}")


def _ask(command: Sequence[str]) -> tuple[int | None, str]:
    """Return a command's exit code and its output; no code, and the reason, if it gave none."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=QUESTION_S,
            check=False,
        )
    except FileNotFoundError:
        return None, "it is not installed"
    except subprocess.TimeoutExpired:
        return None, f"no answer within {QUESTION_S:g} s"
    except OSError as error:
        return None, error.strerror or str(error)
    return done.returncode, done.stdout.decode(errors="replace").strip()
