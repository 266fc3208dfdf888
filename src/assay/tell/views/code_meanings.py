"""What the codes in an explanation mean: the fault class of an XID or of a failed check, and an NVLink sub-code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from assay.model.specs.nvlink_codes import decode_nvlink_xid

if TYPE_CHECKING:
    from assay.model.specs.fault_catalog import FaultCatalog

JsonObject = dict[str, Any]


def add_code_meanings(catalog: FaultCatalog | None, items: Iterable[JsonObject]) -> None:
    """Add `meaning`, `investigate` and `sub_code` to the JSON of faults (key `class`) and outcomes (key `fault`).

    "" where the catalogue has none. Other items, and all items without a catalogue, stay as they are.
    """
    for item in items:
        fault = catalog.find_class(item.get("class") or item.get("fault") or "") if catalog else None
        if fault:
            code = decode_nvlink_xid(item.get("detail") or "", fault.units) if fault.units else None
            item["meaning"], item["investigate"] = fault.summary, fault.investigate
            item["sub_code"] = str(code) if code and code.info is not None else ""


def format_code_meaning(item: Mapping[str, Any]) -> str:
    """Return the meaning in one line, "" if there is none. A sub-code that the item's text has is not repeated."""
    if not item.get("meaning"):
        return ""
    text = item.get("text") or item.get("detail") or ""
    code = f"; sub-code: {item['sub_code']}" if item["sub_code"] and item["sub_code"] not in text else ""
    look = f"; look at: {item['investigate']}" if item["investigate"] else ""
    return f"{item['meaning'].rstrip('.')}{code}{look}"
