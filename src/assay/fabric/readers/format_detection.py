"""Which tool wrote a text, and what it says: `read_tool_output` for anything, `read_topology` for what can be compared with a design.

A format is recognised by what its lines look like, wherever they begin: a terminal's header may stand before them. Of
several formats that a text seems to be, it is the one that is seen first.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import NamedTuple

from assay.fabric.discovery import FabricDiscovery
from assay.model.errors import AssayError


class ToolFormat(NamedTuple):
    """One tool's way of writing. `has` says what it tells where it does not carry a whole topology."""

    name: str
    module: str
    sign: re.Pattern[str]
    has: str = ""


def _lines(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?m)^[ \t]*(?:{pattern})")


_CABLED = r'vendid=|# Topology file|(?:Switch|Ca|Rt)\s*\d+\s*"[SHR]-|\[\d+\][^"\n]*"[SHR]-'
_PORTS = r"(?:CA|SW|RT)\s+\d+\s+\d+\s+0x[0-9a-fA-F]"
_LINKS = r'0x[0-9a-fA-F]+\s+".*==\(|(?:CA|Switch|Router): .*:\r?$|\d+\s+\d+\[.*==\('
_DUMP = r'".*",[^,\n]*,\s*0x[0-9a-fA-F]+,\s*LID|#\s*: IB#'
_UFM = r'"(?:source|destination)_(?:guid|port)"|\A\s*\[\s*\]\s*\Z'
_MLXLINK = r'"(?:Operational Info|Physical Counters and BER Info|Module Info)"'
_NODES = "# (?:Node|Port) info:|Node Description:|0: 0x[0-9a-fA-F]{4} 0x"
_EVENTS = r"\d{4}-\d\d-\d\d [\d:.,]+ \[\d+\] \[\d+\] "

FORMATS = (
    ToolFormat("ibnetdiscover", "readers.ibnetdiscover", _lines(_CABLED)),
    ToolFormat("ibnetdiscover -p", "readers.ibnetdiscover_ports", _lines(_PORTS)),
    ToolFormat("iblinkinfo -l", "readers.iblinkinfo", _lines(_LINKS)),
    ToolFormat("ibdiagnet2.db_csv", "readers.ibdiagnet_db_csv", _lines(r"START_[A-Z]\w*\r?$")),
    ToolFormat("ibdiagnet2.net_dump", "readers.ibdiagnet_net_dump", _lines(_DUMP)),
    ToolFormat("UFM links (JSON)", "readers.ufm_links", re.compile(_UFM)),
    ToolFormat(
        "ibqueryerrors", "readers.ibqueryerrors", _lines("(?:Errors|Data Counters) for 0x|## Summary: "), "errors"
    ),
    ToolFormat("perfquery", "readers.perfquery", _lines(r"#\s*\w[\w ]*? counters: Lid"), "counters"),
    ToolFormat("smpquery", "readers.smpquery", _lines(_NODES), "single nodes and ports"),
    ToolFormat("mlxlink (JSON)", "readers.mlxlink", re.compile(_MLXLINK), "one port"),
    ToolFormat("UFM events", "readers.ufm_events", _lines(_EVENTS), "events"),
)
DETECTION_LENGTHS = (1 << 12, 1 << 16)
"""Where to look first: eleven searches through 10 MB would cost more than reading it."""


def detect_format(text: str) -> ToolFormat | None:
    """Return the format that a text is in, None for a text that is in none of them."""
    for end in (*DETECTION_LENGTHS, len(text)):
        if signs := [(found.start(), one) for one in FORMATS if (found := one.sign.search(text, 0, end))]:
            return min(signs, key=lambda sign: sign[0])[1]
    return None


def read_tool_output(text: str, stderr: str = "") -> FabricDiscovery:
    """Read what any of the tools printed. Raises Trouble for a text that none of them prints."""
    return _read(_detect_or_raise(text), text, stderr)


def read_topology(text: str, stderr: str = "") -> FabricDiscovery:
    """Read a whole fabric. Raises Trouble for a text that is none, or that cannot carry one."""
    form = _detect_or_raise(text)
    if form.has:
        raise AssayError(
            f"this is the output of {form.name}, which tells of {form.has} and not of a whole fabric",
            fix=f"give one of: {', '.join(one.name for one in FORMATS if not one.has)}",
        )
    return _read(form, text, stderr)


def _detect_or_raise(text: str) -> ToolFormat:
    form = detect_format(text)
    if form is None:
        what = "this is not the output of a tool that is known here" if text.strip() else "the discovery is empty"
        raise AssayError(what, fix=f"known are: {', '.join(one.name for one in FORMATS)}")
    return form


def _read(form: ToolFormat, text: str, stderr: str) -> FabricDiscovery:
    discovery: FabricDiscovery = import_module(f"assay.fabric.{form.module}").parse(text, stderr)
    return discovery
