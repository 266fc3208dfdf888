"""Transports that run the probe by a command: the base class, a prefix from the inventory, and this machine itself.

By default the probe comes along: the command's standard input is a script for `python3 -I -S -` that holds the packed
probe and NVML's bindings, and runs them from memory. The node needs nothing but Python, and nothing is written there.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from assay.model.node import Node
from assay.observe.json_command import run_json_command
from assay.observe.transports.transport_protocol import TransportContext

LAB_VARIABLES = ("ASSAY_ROOT", "ASSAY_AT", "ASSAY_CLOCK", "NVML_STUB")
"""Environment variables that let a process live in a lab."""
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

    def environment(self) -> Mapping[str, str] | None:
        """Return the environment of the command, None for that of this process."""
        return None

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Run the probe on the node and return its document, or a failed leaf."""
        words, stdin = build_probe_command(node, arguments)
        command, environment = self.wrap(node, words), self.environment()
        return run_json_command(command, deadline_s, stdin, environment=environment, running=self._commands)


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

    def environment(self) -> Mapping[str, str] | None:
        """Return an environment outside any lab."""
        return environment_without_lab()


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
    if installed := node.settings.probe_command:
        return [*installed, *_without_areas(arguments)], b""
    interpreter = node.settings.ansible.python_interpreter  # a path, or a word such as `auto` that Ansible knows
    python = interpreter if interpreter.startswith("/") else "python3"
    return [python, "-I", "-S", "-", *arguments], build_probe_script(with_nvml=_needs_nvml(arguments))


def _needs_nvml(arguments: Sequence[str]) -> bool:
    return "--areas" not in arguments or "gpu" in _areas(arguments) or "--active" in arguments


def _areas(arguments: Sequence[str]) -> list[str]:
    return arguments[arguments.index("--areas") + 1].split(",")


def _without_areas(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without `--areas`: an installed probe may be older than that option, and then reads all."""
    start = arguments.index("--areas") if "--areas" in arguments else len(arguments)
    return [*arguments[:start], *arguments[start + 2 :]]


def build_probe_script(*, with_nvml: bool = True) -> bytes:
    """Return the script that holds the packed probe: about 180 kB, 170 kB without NVML's bindings."""
    with _PACK_LOCK:
        return _fetch_probe_script(with_nvml)


@functools.cache
def _fetch_probe_script(with_nvml: bool) -> bytes:
    from assay.observe.transports.probe_script_cache import fetch_or_build

    return fetch_or_build(with_nvml, _build_probe_script)


def _build_probe_script(with_nvml: bool) -> bytes:
    from assay.node.probe.pack import COMPILE_ONCE, ENTRY, OLDEST_PYTHON, build_pack

    major, minor = OLDEST_PYTHON
    text = base64.b64encode(build_pack(with_nvml=with_nvml)).decode()
    said = {"oldest": OLDEST_PYTHON, "major": major, "minor": minor, "importer": COMPILE_ONCE}
    return PROBE_SCRIPT.format(packed=text, entry=ENTRY, **said).encode()


def environment_without_lab() -> dict[str, str]:
    """Return this process's environment without the variables that let a process live in a lab."""
    return {name: text for name, text in os.environ.items() if name not in LAB_VARIABLES}
