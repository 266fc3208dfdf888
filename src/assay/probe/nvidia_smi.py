"""GPUs as `nvidia-smi -q -x` tells of them, where NVML cannot be asked: the same `gpu` branch, from text.

It prints no NVLinks. What it says beside the XML is kept too: a GPU without a handle, a corrupted InfoROM.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element

from assay.model.reading import absent, failed, unsupported, value
from assay.probe.bounded_xml import Unreadable, parse
from assay.probe.files import Tree
from assay.probe.nvidia_smi_names import ADDRESS, DEVICE, GPU, LOG, PID, PROCESSES, SYSTEM
from assay.probe.nvidia_smi_words import leaf, whole
from assay.probe.tools import read_tool

COMMAND = ("nvidia-smi", "-q", "-x")
DEADLINE_S = 5.0
SAID_OF = re.compile(r"(?P<domain>[0-9a-fA-F]{4,8}):(?P<bus>[0-9a-fA-F]{2}):(?P<slot>[0-9a-fA-F]{2})\.[0-7]")


def read_nvidia_smi() -> Tree:
    """Run nvidia-smi and return the `gpu` branch; one leaf where it is not installed or does not end."""
    return read_tool(COMMAND, DEADLINE_S, read)


def read(xml: bytes | str) -> Tree:
    """Return the `gpu` branch of what nvidia-smi printed; one failed leaf where that is not its XML."""
    printed = xml.encode(errors="replace") if isinstance(xml, str) else xml
    before, content, after = _split(printed)
    try:
        log = parse(content)
    except Unreadable as error:
        return failed(_first_line(before) or f"nvidia-smi -q -x: {error}")
    if log.tag != LOG:
        return failed(f"nvidia-smi -q -x: <{log.tag}> is not <{LOG}>")
    devices = {_address(gpu, at): _device(gpu, at) for at, gpu in enumerate(log.findall(GPU))}
    for address, line in _said(before):
        devices.setdefault(address, failed(line))
    for address, line in _said(after):
        _spoil_inforom(devices.get(address, {}), line)
    system: Tree = _asked(SYSTEM, log)
    return {
        "source": value("nvidia-smi"),
        **system,
        "nvml": unsupported("read through nvidia-smi"),
        "devices": devices or absent("nvidia-smi lists no GPU"),
    }


def _split(printed: bytes) -> tuple[str, bytes, str]:
    """Return the lines before the XML, the XML, and the lines after it."""
    start, end = printed.find(b"<"), printed.rfind(b">") + 1
    if start < 0:
        return printed.decode(errors="replace"), b"", ""
    return printed[:start].decode(errors="replace"), printed[start:end], printed[end:].decode(errors="replace")


def _first_line(text: str) -> str:
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")


def _said(text: str) -> list[tuple[str, str]]:
    """Return the lines that name a GPU, with its address."""
    named = ((SAID_OF.search(line), line.strip()[:200]) for line in text.splitlines())
    return [(_as_linux_writes(found), line) for found, line in named if found]


def _as_linux_writes(found: re.Match[str]) -> str:
    return f"{int(found['domain'], 16):04x}:{found['bus']}:{found['slot']}.0".lower()


def _address(gpu: Element, at: int) -> str:
    found = SAID_OF.search(gpu.get(ADDRESS, ""))
    return _as_linux_writes(found) if found else f"index {at}"


def _device(gpu: Element, index: int) -> Tree:
    """Return the branch of one GPU; one leaf where not a single thing could be read of it."""
    branch = _asked(DEVICE, gpu)
    leaves = list(_leaves(branch))
    wrong = [one["failed"] for one in leaves if "failed" in one]
    if wrong and not any("value" in one for one in leaves):
        return failed(wrong[0])
    branch["inforom"]["valid"] = unsupported("nvidia-smi speaks of an InfoROM only where it is corrupted")
    return {"index": value(index), **branch, "processes": _processes(gpu)}


def _asked(names: Mapping[str, Any], element: Element) -> Tree:
    return {name: _asked(ask, element) if isinstance(ask, Mapping) else ask(element) for name, ask in names.items()}


def _leaves(branch: Tree) -> list[Tree]:
    below = [one for one in branch.values() if isinstance(one, dict)]
    return [leaf for one in below for leaf in _leaves(one)] if below else [branch]


def _processes(gpu: Element) -> Tree:
    pids = [leaf(PID, process.findtext(PID), whole) for process in gpu.iterfind(PROCESSES)]
    silent = [pid for pid in pids if "value" not in pid]
    if silent:
        return silent[0]
    return {"count": value(len(pids)), "pids": value(sorted(pid["value"] for pid in pids))}


def _spoil_inforom(device: Tree, line: str) -> None:
    if "inforom" in line.casefold() and "inforom" in device:
        device["inforom"]["valid"] = value(False)
