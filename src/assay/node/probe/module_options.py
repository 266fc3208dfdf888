"""Reads the options of loaded kernel modules that the caller names: those that the node's spec declares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from assay.model.reading import ReadingTree, absent, unsupported, value
from assay.node.probe.node_access import LazyTree, NodeRoot, leaf_for_error

NVIDIA_PARAMETERS = "/proc/driver/nvidia/params"
NVIDIA_PREFIX = "NVreg_"
NVIDIA_NAMES = {"RestrictProfilingToAdminUsers": "RmProfilingAdminOnly"}
"""Options whose name in `NVIDIA_PARAMETERS` is another one (NVIDIA/open-gpu-kernel-modules, nv-reg.h)."""
SWITCHES = {"Y": "1", "N": "0"}


def read_module_options(root: NodeRoot, names: Sequence[str]) -> ReadingTree | LazyTree:
    """Return the options named as `module.option`, by module. A switch is `1` or `0`."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        module, _, option = name.partition(".")
        found.setdefault(module, {})[option] = partial(_read_option, root, module, option)
    return found or absent("the caller names no module option")


def _read_option(root: NodeRoot, module: str, option: str) -> ReadingTree:
    path = f"/sys/module/{module}/parameters/{option}"
    if root.exists(path):
        return root.read_leaf(path, lambda text: SWITCHES.get(text, text))
    if module == "nvidia" and option.startswith(NVIDIA_PREFIX):
        return _read_nvidia_option(root, option.removeprefix(NVIDIA_PREFIX))
    if not root.exists(f"/sys/module/{module}"):
        return absent(f"{module} is not loaded")
    return unsupported(f"{module} has no option {option}, or does not show it in /sys/module")


def _read_nvidia_option(root: NodeRoot, option: str) -> ReadingTree:
    """NVIDIA's driver shows its options in a file of its own, as `Name: value`."""
    try:
        text = root.read_text(NVIDIA_PARAMETERS)
    except OSError as error:
        return leaf_for_error(NVIDIA_PARAMETERS, error)
    shown = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    name = NVIDIA_NAMES.get(option, option)
    return value(shown[name].strip('"')) if name in shown else unsupported(f"{NVIDIA_PARAMETERS} does not show {name}")
