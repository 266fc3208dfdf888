"""What is read of a node under load, in few words: temperature, power, clock, and counters of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from assay.model.reading import ReadingTree
from assay.node.probe.devices.memory_modules import read_memory
from assay.node.probe.devices.nvme import read_drives
from assay.node.probe.gpu.gpu_list import read_gpus
from assay.node.probe.isolated_reader import gather_isolated
from assay.node.probe.node_access import NodeRoot, TimedQuestion

WATCH_S = 10.0
GPU_READINGS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "temperature": (("temperature", "gpu_c"),),
    "memory_temperature": (("temperature", "memory_c"),),
    "power": (("power", "draw_w"),),
    "clock": (("clocks", "sm_mhz"),),
    "corrected": (("ecc", "aggregate", "corrected"),),
    "uncorrected": (("ecc", "aggregate", "uncorrected"),),
    "remapped": (("remap", "correctable"), ("remap", "uncorrectable")),
    "links": (("nvlink", "up"),),
}
"""Reading → where it is below a GPU; several are added up."""


def read_passively(root: NodeRoot) -> ReadingTree:
    """Return `gpus` and `dimms`: subject → reading → number. What cannot be read is left out."""
    tree = _gather(root, gpu=read_gpus, memory=read_memory)
    gpus = {}
    for subject, device in _list_gpus(tree["gpu"]):
        found = {name: _add_up(device, paths) for name, paths in GPU_READINGS.items()}
        gpus[subject] = {name: number for name, number in found.items() if number is not None}
    dimms = {}
    for controller in _branches(tree["memory"], "edac"):
        for place, module in (controller.get("dimms") or {}).items():
            label = str(_value(module, "label") or place)
            counts = {name: _value(module, name) for name in ("corrected", "uncorrected")}
            dimms[label] = {name: count for name, count in counts.items() if isinstance(count, int)}
    return {"gpus": gpus, "dimms": dimms}


def identify_parts(root: NodeRoot) -> dict[str, Any]:
    """Return the serial numbers of GPUs, drives and DIMMs by subject."""
    tree = _gather(root, gpu=read_gpus, nvme=read_drives, memory=read_memory)
    gpus = {subject: _value(device, "serial") or _value(device, "uuid") for subject, device in _list_gpus(tree["gpu"])}
    drives = {name: _value(drive, "serial") for name, drive in _items(tree["nvme"])}
    firmware = tree["memory"].get("firmware", {})
    dimms = {name: _value(module, "serial") for name, module in _items(firmware.get("dimms", {}))}
    found = {**gpus, **drives, **dimms}
    return {"serials": {name: str(serial) for name, serial in found.items() if serial}}


def _gather(root: NodeRoot, **areas: Callable[[NodeRoot], Any]) -> dict[str, Any]:
    questions = {name: TimedQuestion(WATCH_S, partial(read, root)) for name, read in areas.items()}
    found: dict[str, Any] = gather_isolated(questions, WATCH_S)
    return found


def _list_gpus(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for _, device in _items(tree.get("devices", {})):
        index = _value(device, "index")
        if index is not None:
            yield f"gpu{index}", device


def _items(tree: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, below in tree.items() if isinstance(tree, Mapping) else ():
        if isinstance(below, Mapping):
            yield name, below


def _branches(tree: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    for _, below in _items(tree.get(name, {})):
        yield below


def _value(tree: Mapping[str, Any], *path: str) -> Any:
    """Return the value at a path, None if there is none."""
    below: Any = tree
    for name in path:
        below = below.get(name) if isinstance(below, Mapping) else None
    return below.get("value") if isinstance(below, Mapping) else None


def _add_up(device: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> float | None:
    """Return the sum of readings, None if one of them is no number."""
    numbers = [_value(device, *path) for path in paths]
    if all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        return float(sum(numbers))
    return None
