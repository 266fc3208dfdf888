"""Detects which tool wrote a text, and reads it. `read_tool_output` reads any tool, `read_topology` a whole fabric.

Each format has a typical line, which may come after others, such as a terminal's header. If several formats match, the
one that matches first in the text wins.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import NamedTuple

from assay.fabric.discovery import FabricDiscovery
from assay.model.errors import AssayError


class ToolFormat(NamedTuple):
    """The output format of one tool: its typical line (`sign`), and the function that reads it, `module:function`.

    `content` names what the format holds instead, if it does not hold a whole topology.
    """

    name: str
    reader: str
    sign: re.Pattern[str]
    content: str = ""


def _lines(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?m)^[ \t]*(?:{pattern})")


_CABLED = r'vendid=|# Topology file|(?:Switch|Ca|Rt)\s*\d+\s*"[SHR]-|\[\d+\][^"\n]*"[SHR]-'
_PORTS = r"(?:CA|SW|RT)\s+\d+\s+\d+\s+0x[0-9a-fA-F]"
_LINKS = r'0x[0-9a-fA-F]+\s+".*==\(|(?:CA|Switch|Router): .*:\r?$|\d+\s+\d+\[.*==\('
_UFM = r'"peer_(?:guid|node_guid|node_name|port_dname)"|\A\s*\[\s*\]\s*\Z'
_NMX = r'"(?:device_topo_info|deviceTopoInfo)"'
_LLDP = r'"lldp"\s*:|"(?:openconfig-lldp:\w+|local-chassis)"|LocalPort +RemoteDevice|Remote Host +Remote Port'
_NODES = "# (?:Node|Port) info:|Node Description:|0: 0x[0-9a-fA-F]{4} 0x"

FORMATS = (
    ToolFormat("ibnetdiscover", "assay.fabric.readers.ibnetdiscover:parse", _lines(_CABLED)),
    ToolFormat("ibnetdiscover -p", "assay.fabric.readers.ibnetdiscover:parse_ports", _lines(_PORTS)),
    ToolFormat("iblinkinfo -l", "assay.fabric.readers.iblinkinfo:parse", _lines(_LINKS)),
    ToolFormat("ibdiagnet2.db_csv", "assay.fabric.readers.ibdiagnet_csv:parse_db_csv", _lines(r"START_[A-Z]\w*\r?$")),
    ToolFormat("UFM ports (JSON)", "assay.fabric.readers.ufm:parse", re.compile(_UFM)),
    ToolFormat("NMX Controller topology (JSON)", "assay.fabric.readers.nmx_topology:parse", re.compile(_NMX)),
    ToolFormat("LLDP (lldpctl, SONiC, NVUE, OpenConfig)", "assay.fabric.readers.lldp:parse", re.compile(_LLDP)),
    ToolFormat(
        "ibqueryerrors",
        "assay.fabric.readers.ibqueryerrors:parse",
        _lines("(?:Errors|Data Counters) for 0x|## Summary: "),
        "errors",
    ),
    ToolFormat("smpquery", "assay.fabric.readers.smpquery:parse", _lines(_NODES), "single nodes and ports"),
)
DEVICE_LIST = _lines(r"(?:Ca|Switch|Router)\s*: 0x[0-9a-fA-F]+ ports \d+ devid")
"""What `ibnetdiscover -l`, `-H` and `-S` print, `ibhosts` and `ibswitches` too: devices without their cables."""
NAMED_PORTS = re.compile(r"(?m)^[ \t]+\S+[ \t]+(?:-\d+x-[\d.]+G-?>|->)[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]*$")
"""A port of a topology file (.topo): see `learn/cabling_file.py`."""
DETECTION_LENGTHS = (1 << 12, 1 << 16)
"""Search so many characters first: a dozen searches through 10 MB would cost more than reading it."""


def detect_format(text: str) -> ToolFormat | None:
    """Return the format of a text, None for a text in no known format."""
    for end in (*DETECTION_LENGTHS, len(text)):
        if matches := [(match.start(), each) for each in FORMATS if (match := each.sign.search(text, 0, end))]:
            return min(matches, key=lambda candidate: candidate[0])[1]
    return None


def read_tool_output(text: str, stderr: str = "") -> FabricDiscovery:
    """Read the output of any known tool. Raises AssayError for any other text."""
    return _read(_detect_or_raise(text), text, stderr)


def read_topology(text: str, stderr: str = "") -> FabricDiscovery:
    """Read a whole fabric. Raises AssayError for a text in no known format, or in one that cannot hold a fabric."""
    tool = _detect_or_raise(text)
    if tool.content:
        raise AssayError(
            f"this is the output of {tool.name}, which has {tool.content} and no whole fabric",
            fix=f"give one of: {', '.join(each.name for each in FORMATS if not each.content)}",
        )
    return _read(tool, text, stderr)


def _detect_or_raise(text: str) -> ToolFormat:
    tool = detect_format(text)
    if tool is None and DEVICE_LIST.search(text):
        raise AssayError(
            "this is a list of devices (ibnetdiscover -l), which has no cables",
            fix="run ibnetdiscover without -l, -H and -S",
        )
    if tool is None and NAMED_PORTS.search(text):
        raise AssayError(
            "this is a topology file (.topo), which names devices and no GUIDs",
            fix="`assay fabric import FILE.topo --from DISCOVERY` drafts a design of it, to compare with",
        )
    if tool is None:
        problem = "this is not the output of a known tool" if text.strip() else "the discovery is empty"
        raise AssayError(problem, fix=f"the known formats are: {', '.join(each.name for each in FORMATS)}")
    return tool


def _read(tool: ToolFormat, text: str, stderr: str) -> FabricDiscovery:
    module, _, function = tool.reader.partition(":")
    discovery: FabricDiscovery = getattr(import_module(module), function)(text, stderr)
    return discovery
