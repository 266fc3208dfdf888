"""Formats the ledger entries of a wipe for people: one line for each drive and method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.model.entries.entry_content import EntryContent
from assay.model.entries.wipe_entries import WipeMissedEntry, WipeOrderedEntry, WipeProvedEntry

METHOD_WORDS = {
    "sanitize-crypto": "sanitize, crypto erase",
    "sanitize-block": "sanitize, block erase",
    "format-crypto": "format, crypto erase",
    "format-erase": "format, user data erase",
}


def _format_order(entry: WipeOrderedEntry, _: str) -> str:
    marked = f"{entry.samples} of its blocks are marked"
    return f"wipes {_name(entry)} by {_method(entry.method)}; {marked}"


def _format_proof(entry: WipeProvedEntry, _: str) -> str:
    return f"{_name(entry)} is proven wiped by {_method(entry.method)}: {entry.proof}"


def _format_miss(entry: WipeMissedEntry, _: str) -> str:
    return f"{_name(entry)} was not wiped by {_method(entry.method)}: {entry.reason}"


def _name(entry: WipeOrderedEntry | WipeProvedEntry | WipeMissedEntry) -> str:
    return f"{entry.drive} ({entry.model}, serial {entry.serial})"


def _method(name: str) -> str:
    return METHOD_WORDS.get(name, name)


WIPE_FORMATTERS: Mapping[type[EntryContent], Callable[[Any, str], str]] = {
    WipeOrderedEntry: _format_order,
    WipeProvedEntry: _format_proof,
    WipeMissedEntry: _format_miss,
}
