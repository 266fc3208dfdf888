"""Transports that run the probe by a command: a prefix from the inventory, this machine itself, ssh, srun, kubectl.

By default the probe comes along: the command's standard input is a script for `python3 -I -S -` that holds the packed
probe and NVML's bindings, and runs them from memory. The node needs nothing but Python, and nothing is written there.
The transports `ssh`, `slurm` and `kubernetes` only say by which command the words reach the node.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import json
import math
import shlex
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel

from assay.declare.cache_file_format import encode_sections, fingerprint_program, read_cache_file, write_cache_file
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.node_settings import AnsibleConnection, KubernetesExecSettings, SlurmStepSettings
from assay.observe.json_command import run_json_command
from assay.observe.transports.transport_protocol import TransportContext

PROBE_SCRIPT = """\
import gc, sys
gc.disable()
if sys.version_info < {oldest}:
    sys.exit("the probe needs Python {major}.{minor} or newer on the node; this is " + sys.version.split()[0])
import base64
{importer}memory = os.memfd_create("assay-probe")
os.write(memory, base64.b64decode("{packed}"))
sys.path.insert(0, "/proc/self/fd/%d" % memory)
from {entry} import main
main()
"""
_PACK_LOCK = threading.Lock()  # many threads need it at once, and in CPython 3.11 two threads in ast.parse clash
FOLDER = Path(importlib.util.cache_from_source(__file__)).parent / "probe_scripts"
MAX_FILES = 8
SCRIPT = "script"
SOURCE_ROOMS = ("model", "observe/transports", "node")
SSH_QUIET = ("-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR")  # ssh then prints nothing but its reason to fail
OWN_JOB_OPTIONS = ("--job-name=assay-probe", "--immediate=5", "--mem=64M")
OVERLAP_OPTIONS = ("--overlap", "--mem=0", "--gres=none")
SQUEUE_TIMEOUT_S = 5.0
ACTIVE_JOB_MINUTES = 30
PodSelector = tuple[str, str, str]
"""Context, namespace, and the pods' label selector."""


class CommandTransport:
    """Runs the probe by a command. A subclass defines `wrap`, and settings where it has some."""

    settings_name: ClassVar[str] = ""
    settings_model: ClassVar[type[BaseModel] | None] = None

    def __init__(self, context: TransportContext) -> None:
        self._commands = context.commands

    def wrap(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the command here that runs `words` on the node and passes its standard streams on.

        May raise AssayError.
        """
        raise NotImplementedError

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Run the probe on the node and return its document, or a failed leaf."""
        words, stdin = build_probe_command(node, arguments)
        return run_json_command(self.wrap(node, words), deadline_s, stdin, running=self._commands)


class ReachTransport(CommandTransport):
    """Runs the words after the argv prefix `reach` of the inventory."""

    def wrap(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the prefix and the words."""
        return [*node.settings.reach, *words]


class LocalTransport(CommandTransport):
    """Runs the words on this machine, in the Python that runs this program."""

    def wrap(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the words, with the path of this Python."""
        del node
        return [sys.executable, *words[1:]] if words[0] == "python3" else list(words)


class SshTransport(CommandTransport):
    """Runs the probe through OpenSSH, with the user's own configuration for connections, jump hosts and keys.

    Ansible's connection variables of a node count here too, so that both reach it alike.
    """

    def wrap(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the ssh command. Raises AssayError where a variable is a Jinja template.

        The words are one quoted argument, since the login shell on the node splits it again.
        """
        ansible = node.settings.ansible
        _refuse_templates(node, ansible)
        options = [("-p", ansible.port), ("-l", ansible.user), ("-i", ansible.ssh_private_key_file)]
        command = ["ssh", *SSH_QUIET, *(word for option, text in options if text for word in (option, text))]
        command += [*shlex.split(ansible.ssh_common_args), *shlex.split(ansible.ssh_extra_args)]
        become = ["sudo", "-n"] if ansible.become else []
        return [*command, "--", ansible.host or node.name, shlex.join([*become, *words])]


def _refuse_templates(node: Node, ansible: AnsibleConnection) -> None:
    for name, text in ansible._replace(python_interpreter="", become=False)._asdict().items():
        if text and "{{" in text:
            message = f"ansible_{name} of {node.name} is a template, which only Ansible can fill in"
            raise AssayError(message, where="inventory", fix="write it plainly, or name the node in ~/.ssh/config")


class SlurmStepTransport(CommandTransport):
    """Runs the probe through srun: a step on the node, in a job of its own with one core, or inside the running job.

    Where `join` is on and a job runs, the step overlaps that job. It then takes no cores, GPUs or memory from later
    steps, but counts as that job's (needs the rights of Slurm's operator or of the job's owner). Otherwise the node
    must have a free core; on a full node the reading is failed. This process's environment does not reach the node.
    """

    settings_name = "slurm_step"
    settings_model = SlurmStepSettings

    def wrap(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the srun command. Raises AssayError where squeue must name the running job and does not answer."""
        from assay.adapters.slurm.client import ONE_TASK_OPTIONS
        from assay.adapters.slurm.jobs import find_running_job

        settings = node.settings.slurm_step or SlurmStepSettings()
        name = settings.node or node.name
        job = find_running_job(name, SQUEUE_TIMEOUT_S) if settings.join else ""
        options = [f"--jobid={job}", *OVERLAP_OPTIONS] if job else [f"--time={_time_limit(words)}", *OWN_JOB_OPTIONS]
        command = ["srun", "--quiet", f"--nodelist={name}", *ONE_TASK_OPTIONS, "--cpus-per-task=1"]
        return [*command, *options, *settings.options, "--", *words]


def _time_limit(words: Sequence[str]) -> int:
    """Return the job's limit in minutes, for a job that nobody ends: a passive probe takes its `--deadline`."""
    if "--active" not in words:
        seconds = float(words[words.index("--deadline") + 1]) if "--deadline" in words else SQUEUE_TIMEOUT_S
        return math.ceil(seconds / 60)
    from assay.node.load_tools.registry import find_long_parts_s

    parts = words[words.index("--active") + 1].split(",")
    return ACTIVE_JOB_MINUTES + math.ceil(find_long_parts_s(parts) / 60)


class KubectlExecTransport(CommandTransport):
    """Runs the probe by `kubectl exec`, in the pod of a DaemonSet that runs on the node and sees it.

    Lists the pods of each DaemonSet once a pass, for all nodes.
    """

    settings_name = "kubernetes_exec"
    settings_model = KubernetesExecSettings

    def __init__(self, context: TransportContext) -> None:
        super().__init__(context)
        self._lock = threading.Lock()
        self._pods: dict[PodSelector, Mapping[str, str]] = {}

    def wrap(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the command. Raises AssayError if no pod runs on the node, or if the cluster does not answer."""
        settings = node.settings.kubernetes_exec or KubernetesExecSettings()
        name = settings.node or node.name
        pod = self._find_pods((settings.context, settings.namespace, settings.pods)).get(name)
        if pod is None:
            raise AssayError(f"no pod {settings.pods} runs on {name} in the namespace {settings.namespace}")
        context = [f"--context={settings.context}"] if settings.context else []
        container = [f"--container={settings.container}"] if settings.container else []
        command = ["kubectl", *context, f"--namespace={settings.namespace}", "exec", "--stdin", pod, *container]
        return [*command, "--", *words]

    def _find_pods(self, selector: PodSelector) -> Mapping[str, str]:
        """Return node → pod."""
        from assay.adapters.kubernetes.client import list_running_pods

        with self._lock:
            if selector not in self._pods:
                context, namespace, labels = selector
                self._pods[selector] = list_running_pods(context, namespace, labels)
            return self._pods[selector]


def build_probe_command(node: Node, arguments: Sequence[str]) -> tuple[list[str], bytes]:
    """Return the words that run the probe on the node, and their standard input.

    They run the installed probe where the inventory names one (`probe_command`), else the probe that comes along. A
    probe that loads the node is told what is declared for its load tools (`load`, `load_tools`).
    """
    loads = "--active" in arguments or "start" in arguments[1:2]
    if node.settings.load and loads:
        arguments = [*arguments, "--load", json.dumps(node.settings.load.as_json(), sort_keys=True)]
    if node.settings.load_tools and loads:
        arguments = [*arguments, "--load-tools", json.dumps(node.settings.load_tools.as_json(), sort_keys=True)]
    areas_at = arguments.index("--areas") if "--areas" in arguments else len(arguments)
    if installed := node.settings.probe_command:  # it may be older than `--areas`: without this option it reads all
        return [*installed, *arguments[:areas_at], *arguments[areas_at + 2 :]], b""
    interpreter = node.settings.ansible.python_interpreter  # a path, or a word such as `auto` that Ansible knows
    python = interpreter if interpreter.startswith("/") else "python3"
    areas = arguments[areas_at + 1].split(",") if areas_at < len(arguments) else ["gpu"]
    with_nvml = "gpu" in areas or "--active" in arguments
    return [python, "-I", "-S", "-", *arguments], build_probe_script(with_nvml=with_nvml)


def build_probe_script(*, with_nvml: bool = True) -> bytes:
    """Return the script that holds the packed probe: about 410 kB, 370 kB without NVML's bindings."""
    with _PACK_LOCK:
        return _fetch_probe_script(with_nvml)


@functools.cache
def _fetch_probe_script(with_nvml: bool) -> bytes:
    return fetch_or_build(with_nvml, _build_probe_script)


def fetch_or_build(with_nvml: bool, build: Callable[[bool], bytes]) -> bytes:
    """Return the script of these sources, kept or built.

    It is kept beside Python's compiled modules, under a key that covers what it is made of: building it takes each
    process 0.2 CPU s, reading it 0.01. Where no compiled modules may be written, nothing is kept.
    """
    path = FOLDER / f"{_key(with_nvml)}.cache"
    kept = read_cache_file(path)
    if kept is not None:
        return kept.bytes(SCRIPT)
    script = build(with_nvml)
    if not sys.dont_write_bytecode:
        write_cache_file(path, encode_sections({SCRIPT: script}), MAX_FILES)
    return script


def _build_probe_script(with_nvml: bool) -> bytes:
    from assay.node.probe.pack import COMPILE_ONCE, ENTRY, OLDEST_PYTHON, build_pack

    major, minor = OLDEST_PYTHON
    text = base64.b64encode(build_pack(with_nvml=with_nvml, with_code=True)).decode()
    values = {"oldest": OLDEST_PYTHON, "major": major, "minor": minor, "importer": COMPILE_ONCE}
    return PROBE_SCRIPT.format(packed=text, entry=ENTRY, **values).encode()


def _key(with_nvml: bool) -> str:
    """Return a digest of the state of the files that a script is made of."""
    spec = importlib.util.find_spec("pynvml")
    bindings = spec.origin if spec and spec.origin else ""
    status = Path(bindings).stat() if bindings else None
    state = status and (status.st_mtime_ns, status.st_size)
    made_of = (with_nvml, sys.version, fingerprint_program(SOURCE_ROOMS), bindings, state)
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:32]
