"""Reads a list of hosts and the GUIDs of their adapters, as inventories and scripts over `ibstat` write it.

```
n0001 0xa088c20300000010 0xa088c20300000020     the adapters of a host, rail 0 first
n0001 mlx5_0 a088:c203:0000:0010                one adapter a line, with its name in the host
0xa088c20300000010,n0001,mlx5_0                 the same, in any order, with commas, semicolons or tabs
```
Lines without a GUID that begin the file are a header. GUIDs are those of nodes, not of ports.
"""

from __future__ import annotations

import re

from assay.model.errors import AssayError
from assay.model.fabric.adapter_names import HostAdapter
from assay.model.fabric.ports_and_cables import normalize_guid

GUID = re.compile(r"(?:0x)?[0-9a-fA-F]{16}|(?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}")
SLOT = re.compile(r"(?:mlx|hca|ib|hfi|qib|mthca|rail|nic)[-_\w]*\d", re.IGNORECASE)
"""What names an adapter, beside the host's own name."""


def read_host_list(text: str) -> dict[str, HostAdapter]:
    """Return the host of each adapter by GUID. Raises AssayError for a line without a host, or a GUID given twice."""
    found: dict[str, HostAdapter] = {}
    rails: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = [word for word in re.split(r"[\s,;|\"]+", line.partition("#")[0]) if word]
        guids = [normalize_guid(word.replace(":", "")) for word in words if GUID.fullmatch(word)]
        if not words or not (guids or found):
            continue
        host, slot = _read_names([word for word in words if not GUID.fullmatch(word)])
        if not guids or not host:
            missing = "GUID" if host else "host"
            raise AssayError(f"no {missing}", where=f"line {number}", fix="write a host, then its adapters' GUIDs")
        for guid in guids:
            if guid in found:
                raise AssayError(f"{guid} stands twice", where=f"line {number}", fix="a GUID belongs to one adapter")
            rail = rails[host] = rails.get(host, -1) + 1
            is_named = slot and len(guids) == 1
            found[guid] = HostAdapter(host, slot) if is_named else HostAdapter(host, f"mlx5_{rail}", rail)
    if not found:
        raise AssayError("no line has a host and a GUID", fix="write lines as `n0001 0xa088c20300000010`")
    return found


def _read_names(words: list[str]) -> tuple[str, str]:
    """Return the host and the adapter that a line names, "" for each that it does not name."""
    slots = [word for word in words if SLOT.fullmatch(word)]
    hosts = [word for word in words if word not in slots] or slots[:1]
    return (hosts[0] if hosts else ""), (slots[-1] if slots and slots[-1] not in hosts else "")
