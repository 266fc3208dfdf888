"""GPUs as `nvidia-smi -q -x` tells of them, where NVML cannot be asked: the same `gpu` branch, from text.

It prints no NVLinks. What it says beside the XML is kept too: a GPU without a handle, a corrupted InfoROM.

Read XML that a tool printed: no entity, nothing from elsewhere, and bounds on size, depth and number of elements.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from assay.model.reading import absent, failed, unsupported, value
from assay.probe.gpu.nvidia_smi_elements import ADDRESS, DEVICE, GPU, LOG, PID, PROCESSES, SYSTEM
from assay.probe.gpu.nvidia_smi_values import parse_whole, read_value
from assay.probe.node_access import Tree, run_tool

MAX_XML_BYTES = 32 * 2**20
MAX_XML_ELEMENTS = 500_000
MAX_XML_DEPTH = 32


class UntrustedXml(ValueError):
    """What was given is no XML that can be trusted."""


def parse_bounded_xml(content: bytes) -> Element:
    """Return the root element of UTF-8 XML. Raises Unreadable.

    A document type may be named; it is not loaded. One that declares an entity is refused, so nothing can grow.
    """
    if len(content) > MAX_XML_BYTES:
        raise UntrustedXml(f"more than {MAX_XML_BYTES} bytes")
    reader = _BoundedXmlReader()
    try:
        reader.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise UntrustedXml(str(error)) from None
    return reader.builder.close()


class _BoundedXmlReader:
    """An expat parser that builds elements and counts them."""

    def __init__(self) -> None:
        self.builder = TreeBuilder()
        self.depth = self.elements = 0
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self.builder.data
        self.parser.EntityDeclHandler = self._refuse

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.elements += 1
        if self.depth > MAX_XML_DEPTH or self.elements > MAX_XML_ELEMENTS:
            raise UntrustedXml(f"more than {MAX_XML_DEPTH} elements deep, or more than {MAX_XML_ELEMENTS} of them")
        self.builder.start(name, attributes)

    def _end(self, name: str) -> None:
        self.depth -= 1
        self.builder.end(name)

    def _refuse(self, *_: Any) -> None:
        raise UntrustedXml("it declares an entity")


COMMAND = ("nvidia-smi", "-q", "-x")
DEADLINE_S = 5.0
GPU_ADDRESS = re.compile(r"(?P<domain>[0-9a-fA-F]{4,8}):(?P<bus>[0-9a-fA-F]{2}):(?P<slot>[0-9a-fA-F]{2})\.[0-7]")


def read_nvidia_smi() -> Tree:
    """Run nvidia-smi and return the `gpu` branch; one leaf where it is not installed or does not end."""
    return run_tool(COMMAND, DEADLINE_S, parse_nvidia_smi)


def parse_nvidia_smi(xml: bytes | str) -> Tree:
    """Return the `gpu` branch of what nvidia-smi printed; one failed leaf where that is not its XML."""
    printed = xml.encode(errors="replace") if isinstance(xml, str) else xml
    before, content, after = _split(printed)
    try:
        log = parse_bounded_xml(content)
    except UntrustedXml as error:
        return failed(_first_line(before) or f"nvidia-smi -q -x: {error}")
    if log.tag != LOG:
        return failed(f"nvidia-smi -q -x: <{log.tag}> is not <{LOG}>")
    devices = {_address(gpu, at): _device(gpu, at) for at, gpu in enumerate(log.findall(GPU))}
    for address, line in _lines_about_gpus(before):
        devices.setdefault(address, failed(line))
    for address, line in _lines_about_gpus(after):
        _spoil_inforom(devices.get(address, {}), line)
    system: Tree = _read_elements(SYSTEM, log)
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


def _lines_about_gpus(text: str) -> list[tuple[str, str]]:
    """Return the lines that name a GPU, with its address."""
    named = ((GPU_ADDRESS.search(line), line.strip()[:200]) for line in text.splitlines())
    return [(_as_linux_writes(found), line) for found, line in named if found]


def _as_linux_writes(found: re.Match[str]) -> str:
    return f"{int(found['domain'], 16):04x}:{found['bus']}:{found['slot']}.0".lower()


def _address(gpu: Element, at: int) -> str:
    found = GPU_ADDRESS.search(gpu.get(ADDRESS, ""))
    return _as_linux_writes(found) if found else f"index {at}"


def _device(gpu: Element, index: int) -> Tree:
    """Return the branch of one GPU; one leaf where not a single thing could be read of it."""
    branch = _read_elements(DEVICE, gpu)
    leaves = list(_leaves(branch))
    wrong = [one["failed"] for one in leaves if "failed" in one]
    if wrong and not any("value" in one for one in leaves):
        return failed(wrong[0])
    branch["inforom"]["valid"] = unsupported("nvidia-smi speaks of an InfoROM only where it is corrupted")
    return {"index": value(index), **branch, "processes": _processes(gpu)}


def _read_elements(names: Mapping[str, Any], element: Element) -> Tree:
    return {
        name: _read_elements(ask, element) if isinstance(ask, Mapping) else ask(element) for name, ask in names.items()
    }


def _leaves(branch: Tree) -> list[Tree]:
    below = [one for one in branch.values() if isinstance(one, dict)]
    return [leaf for one in below for leaf in _leaves(one)] if below else [branch]


def _processes(gpu: Element) -> Tree:
    pids = [read_value(PID, process.findtext(PID), parse_whole) for process in gpu.iterfind(PROCESSES)]
    silent = [pid for pid in pids if "value" not in pid]
    if silent:
        return silent[0]
    return {"count": value(len(pids)), "pids": value(sorted(pid["value"] for pid in pids))}


def _spoil_inforom(device: Tree, line: str) -> None:
    if "inforom" in line.casefold() and "inforom" in device:
        device["inforom"]["valid"] = value(False)
