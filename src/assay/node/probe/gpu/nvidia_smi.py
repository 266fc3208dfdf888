"""Reads GPUs through `nvidia-smi -q -x` where NVML is missing, and gives the same `gpu` branch.

nvidia-smi prints no NVLinks. Its lines beside the XML count too: a GPU without a handle, a corrupted InfoROM. The XML
is parsed with bounds on size, depth and elements, without entities and without files from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from assay.model.reading import LOST, ReadingTree, absent, failed, unsupported, value
from assay.node.probe.gpu.nvidia_smi_elements import (
    ADDRESS,
    DEVICE,
    GPU,
    LOG,
    PID,
    PROCESSES,
    SYSTEM,
    find_text,
    parse_whole,
    read_value,
)
from assay.node.probe.node_access import run_tool

COMMAND = ("nvidia-smi", "-q", "-x")
DEADLINE_S = 5.0
GPU_ADDRESS = re.compile(r"(?P<domain>[0-9a-fA-F]{4,8}):(?P<bus>[0-9a-fA-F]{2}):(?P<slot>[0-9a-fA-F]{2})\.[0-7]")

MAX_XML_BYTES = 32 * 2**20
MAX_XML_ELEMENTS = 500_000
MAX_XML_DEPTH = 32


def read_nvidia_smi() -> ReadingTree:
    """Run nvidia-smi and return the `gpu` branch; one leaf where it is not installed or does not end."""
    return run_tool(COMMAND, DEADLINE_S, parse_nvidia_smi)


def parse_nvidia_smi(xml: bytes | str) -> ReadingTree:
    """Return the `gpu` branch of nvidia-smi's output; one failed leaf where that is not its XML."""
    output = xml.encode(errors="replace") if isinstance(xml, str) else xml
    before, content, after = _split_output(output)
    try:
        log = parse_bounded_xml(content)
    except UntrustedXml as error:
        remarks = [line.strip()[:200] for line in before.splitlines() if line.strip()]
        return failed(remarks[0] if remarks else f"nvidia-smi -q -x: {error}")
    if log.tag != LOG:
        return failed(f"nvidia-smi -q -x: <{log.tag}> is not <{LOG}>")
    devices: ReadingTree = {}
    for index, gpu in enumerate(log.findall(GPU)):
        attribute = GPU_ADDRESS.search(gpu.get(ADDRESS, ""))
        devices[_format_address(attribute) if attribute else f"index {index}"] = _device(gpu, index)
    for address, line in _lines_about_gpus(before):
        devices.setdefault(address, failed(line))
    for address, line in _lines_about_gpus(after):
        if "inforom" in line.casefold() and "inforom" in devices.get(address, {}):
            devices[address]["inforom"]["valid"] = value(False)
    system: ReadingTree = _read_elements(SYSTEM, log)
    return {
        "source": value("nvidia-smi"),
        **system,
        "nvml": unsupported("read through nvidia-smi"),
        "devices": devices or absent("nvidia-smi lists no GPU"),
    }


def _split_output(output: bytes) -> tuple[str, bytes, str]:
    """Return the lines before the XML, the XML, and the lines after it."""
    start = output.find(b"<")
    end = output.rfind(b">") + 1
    if start < 0:
        return output.decode(errors="replace"), b"", ""
    return output[:start].decode(errors="replace"), output[start:end], output[end:].decode(errors="replace")


def _lines_about_gpus(text: str) -> list[tuple[str, str]]:
    """Return the lines that name a GPU, with its address."""
    named = ((GPU_ADDRESS.search(line), line.strip()[:200]) for line in text.splitlines())
    return [(_format_address(address), line) for address, line in named if address]


def _format_address(address: re.Match[str]) -> str:
    """Return a match of `GPU_ADDRESS` as Linux writes addresses, `0000:1b:00.0`."""
    return f"{int(address['domain'], 16):04x}:{address['bus']}:{address['slot']}.0".lower()


def _device(gpu: Element, index: int) -> ReadingTree:
    """Return the branch of one GPU; one failed leaf where it is lost, or none of its readings has a value."""
    branch = _read_elements(DEVICE, gpu)
    leaves = list(_leaves(branch))
    failures = [leaf["failed"] for leaf in leaves if "failed" in leaf]
    processes = _processes(gpu)
    lost = [failure for failure in (*failures, processes.get("failed", "")) if LOST in failure.casefold()]
    if lost or (failures and not any("value" in leaf for leaf in leaves)):
        return failed([*lost, *failures][0])
    branch["inforom"]["valid"] = unsupported("nvidia-smi mentions an InfoROM only where it is corrupted")
    return {"index": value(index), **branch, "processes": processes}


def _read_elements(names: Mapping[str, Any], element: Element) -> ReadingTree:
    return {
        name: _read_elements(question, element) if isinstance(question, Mapping) else question(element)
        for name, question in names.items()
    }


def _leaves(tree: ReadingTree) -> list[ReadingTree]:
    branches = [branch for branch in tree.values() if isinstance(branch, dict)]
    return [leaf for branch in branches for leaf in _leaves(branch)] if branches else [tree]


def _processes(gpu: Element) -> ReadingTree:
    if gpu.find(PROCESSES) is None and (remark := find_text(gpu, PROCESSES)):
        return read_value(PROCESSES, remark, str)
    pids = [read_value(PID, process.findtext(PID), parse_whole) for process in gpu.iterfind(PROCESSES)]
    unread = [pid for pid in pids if "value" not in pid]
    if unread:
        return unread[0]
    return {"count": value(len(pids)), "pids": value(sorted(pid["value"] for pid in pids))}


class UntrustedXml(ValueError):
    """The XML breaks a bound, declares an entity or is not well-formed."""


def parse_bounded_xml(content: bytes) -> Element:
    """Return the root element of UTF-8 XML. Raises UntrustedXml.

    A document type may be named but is not loaded. Entities are refused, so nothing can expand.
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
