"""Transports that are commands: something that runs words on a node and carries what goes in and comes out.

The probe on its way to a node: a script for `python3 -I -S -` that holds the packed probe and runs it from memory.

Nothing need be installed there but Python, and nothing is written: the zip lies in a memfd. Its words need no
quoting by any shell in between. NVML's bindings go along.

OpenSSH with the user's own configuration; connections that persist, jump hosts and keys are its business.

What the inventory tells Ansible of a host counts here too, so that both go the same way.
"""

from __future__ import annotations

import base64
import functools
import os
import shlex
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.node_settings import AnsibleConnection
from assay.observe.json_command import RunningCommands, run_json_command
from assay.probe.pack import ENTRY, OLDEST_PYTHON, build_pack

PROBE_SCRIPT = """\
import sys
if sys.version_info < {oldest}:
    sys.exit("the probe needs Python {major}.{minor} or newer on the node; this is " + sys.version.split()[0])
import base64, os
memory = os.memfd_create("assay-probe")
os.write(memory, base64.b64decode("{packed}"))
sys.path.insert(0, "/proc/self/fd/%d" % memory)
from {entry} import main
main()
"""


_PACK_LOCK = threading.Lock()  # many threads ask at once, and in CPython 3.11 two of them in ast.parse break each other


def build_probe_script() -> bytes:
    """Return the script: about 160 kB, made once."""
    with _PACK_LOCK:
        return _build_probe_script()


@functools.cache
def _build_probe_script() -> bytes:
    major, minor = OLDEST_PYTHON
    text = base64.b64encode(build_pack(with_nvml=True)).decode()
    return PROBE_SCRIPT.format(oldest=OLDEST_PYTHON, major=major, minor=minor, packed=text, entry=ENTRY).encode()


LAB_VARIABLES = ("ASSAY_ROOT", "ASSAY_AT", "NVML_STUB")
"""What makes a process live in a lab."""

CommandWrapper = Callable[[Node, Sequence[str]], list[str]]
"""From a node and the words to run there to the command to run here. May raise Trouble."""


@dataclass(frozen=True)
class CommandTransport:
    """Asks the probe through a command. `environment` is that of the command, ours where it is None."""

    wrap: CommandWrapper
    commands: RunningCommands
    environment: Mapping[str, str] | None = None

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Run the probe that is installed there where `probe_command` says so, else ours, which goes along."""
        words, given = build_probe_command(node, arguments)
        return run_json_command(
            self.wrap(node, words), deadline_s, given, environment=self.environment, running=self.commands
        )


def build_probe_command(node: Node, arguments: Sequence[str]) -> tuple[list[str], bytes]:
    """Return the words that run the probe on the node itself, and what they are given on standard input."""
    if installed := node.settings.probe_command:
        return [*installed, *arguments], b""
    return [_python(node), "-I", "-S", "-", *arguments], build_probe_script()


def wrap_reach_prefix(node: Node, words: Sequence[str]) -> list[str]:
    """Put the argv prefix that the inventory gives before the words."""
    return [*node.settings.reach, *words]


def wrap_local(node: Node, words: Sequence[str]) -> list[str]:
    """Run the words here, in the Python that runs this program."""
    del node
    return [sys.executable, *words[1:]] if words[0] == "python3" else list(words)


def environment_without_lab() -> dict[str, str]:
    """Return our environment without what makes a process live in a lab."""
    return {name: text for name, text in os.environ.items() if name not in LAB_VARIABLES}


def _python(node: Node) -> str:
    """Return the node's Python as Ansible is told it, where that is a path and not a way to find one."""
    interpreter = node.settings.ansible.python_interpreter
    return interpreter if interpreter.startswith("/") else "python3"


SSH_QUIET = ("-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR")  # so that what it says is the reason


def wrap_ssh(node: Node, words: Sequence[str]) -> list[str]:
    """Return the command; the words go as one, quoted, since the login shell there takes them apart again."""
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
            what = f"ansible_{name} of {node.name} is a template, which only Ansible can fill in"
            raise AssayError(what, where="inventory", fix="write it plainly, or name the node in ~/.ssh/config")
