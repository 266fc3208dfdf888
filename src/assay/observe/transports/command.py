"""Transports that are commands: something that runs words on a node and carries what goes in and comes out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model.fleet import Node
from assay.observe.ask import Running, ask
from assay.observe.shipped import script

INTERPRETER = "ansible_python_interpreter"
VIRTUAL = ("ASSAY_ROOT", "ASSAY_AT", "NVML_STUB")
"""What makes a process live in a lab."""

Wrap = Callable[[Node, Sequence[str]], list[str]]
"""From a node and the words to run there to the command to run here. May raise Trouble."""


@dataclass(frozen=True)
class ByCommand:
    """Asks the probe through a command. `environment` is that of the command, ours where it is None."""

    wrap: Wrap
    running: Running
    environment: Mapping[str, str] | None = None

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Run the probe that is installed there where `probe_command` says so, else ours, which goes along."""
        words, given = words_there(node, arguments)
        return ask(self.wrap(node, words), deadline_s, given, environment=self.environment, running=self.running)


def words_there(node: Node, arguments: Sequence[str]) -> tuple[list[str], bytes]:
    """Return the words that run the probe on the node itself, and what they are given on standard input."""
    if installed := node.variables.get("probe_command"):
        return [*map(str, installed), *arguments], b""
    return [_python(node), "-I", "-S", "-", *arguments], script()


def reach(node: Node, words: Sequence[str]) -> list[str]:
    """Put the argv prefix that the inventory gives before the words."""
    return [*map(str, node.variables["reach"]), *words]


def local(node: Node, words: Sequence[str]) -> list[str]:
    """Run the words here, in the Python that runs this program."""
    del node
    return [sys.executable, *words[1:]] if words[0] == "python3" else list(words)


def outside_any_lab() -> dict[str, str]:
    """Return our environment without what makes a process live in a lab."""
    return {name: text for name, text in os.environ.items() if name not in VIRTUAL}


def _python(node: Node) -> str:
    """Return the node's Python as Ansible is told it, where that is a path and not a way to find one."""
    told = str(node.variables.get(INTERPRETER, ""))
    return told if told.startswith("/") else "python3"
