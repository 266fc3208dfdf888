"""What the sections of an ibdiagnet2 `db_csv` say of single ports and devices (`db_csv.py` has the grammar)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from assay.fabric.port_facts import SATURATION, ModuleValue, PortFacts, classic_saturated
from assay.fabric.readers import ratios
from assay.fabric.readers.db_csv_sections import Row, Unreadable, each, guid_in, number, place, said
from assay.model.cable import Port
from assay.model.partitions import FULL

COUNTERS = {"PortXmitDiscard": "PortXmitDiscards", "ExcBufOverrunErrors": "ExcessiveBufferOverrunErrors"} | {
    name: name
    for name in (
        *SATURATION, "PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMulticastXmitPkts", "PortMulticastRcvPkts",
    )
}  # fmt: skip
"""PM_INFO's names, without what follows the name of a wide counter, and perfquery's."""
WIDE = re.compile(r"(\w+?)(?:Extended|Ext)$")
NOT_COUNTED = (1 << 64) - 2
"""From here on a wide counter says that it is not supported."""
TEXTS = {"Vendor": "vendor", "PN": "part", "SN": "serial", "FWVersion": "firmware", "TypeDesc": "technology"}
NUMBERS = {"Temperature": "temperature_c", "LengthDesc": "length_m", "Voltage": "voltage_mv"}
BER = {"raw": ("field12", "field13"), "effective": ("field14", "field15"), "symbol": ("field16", "field17")}
"""Where PHY_DB16, the physical layer's statistics, has mantissa and exponent of each ratio."""


def facts(tables: Mapping[str, list[Row]], problems: list[str]) -> Iterator[PortFacts]:
    """Yield what each section says of a port."""
    for name, read in (
        ("CABLE_INFO", _module), ("PM_INFO", _counters), ("PHY_DB16", _ber), ("PORT_HIERARCHY_INFO", _label),
    ):  # fmt: skip
        yield from each(tables, name, read, problems)
    yield from _partitions(tables, problems)


def temperatures(tables: Mapping[str, list[Row]], problems: list[str]) -> dict[str, float]:
    """Return how warm devices themselves are, in °C by GUID. Modules tell theirs in CABLE_INFO."""
    return dict(each(tables, "TEMP_SENSING", _warmth, problems))


def _module(row: Row) -> PortFacts | None:
    module: dict[str, ModuleValue] = {ours: text for theirs, ours in TEXTS.items() if (text := said(row, theirs))}
    for theirs, ours in NUMBERS.items():
        if found := re.match(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?", row.get(theirs, "")):
            module[ours] = float(found[0])
    return PortFacts(place(row), module=module) if module else None


def _counters(row: Row) -> PortFacts:
    """Return the counters. One that is not wide and stands at its end means "at least"."""
    narrow: dict[str, int] = {}
    wide: dict[str, int] = {}
    for column in row:
        long = WIDE.fullmatch(column)
        name = COUNTERS.get(long[1] if long else column)
        if name and said(row, column) and (count := number(row, column)) < NOT_COUNTED:
            (wide if long else narrow)[name] = count
    return PortFacts(place(row), counters=narrow | wide, saturated=classic_saturated(narrow) - wide.keys())


def _label(row: Row) -> PortFacts | None:
    label = said(row, "ExtendedLabel") or said(row, "Label")
    return PortFacts(place(row), label=label) if label else None


def _partitions(tables: Mapping[str, list[Row]], problems: list[str]) -> Iterator[PortFacts]:
    """Yield the P_Keys of ports. Of a section with a row that cannot be read no table is known to be whole."""
    before = len(problems)
    keys: dict[Port, set[int]] = {}
    for port, key in each(tables, "PKEY", _key, problems):
        keys.setdefault(port, set()).add(key)
    if len(problems) == before:
        yield from (PortFacts(port, pkeys=frozenset(known)) for port, known in keys.items())


def _ber(row: Row) -> PortFacts | None:
    told = {name: _ratio(row, *columns) for name, columns in BER.items()}
    known = {name: ratio for name, ratio in told.items() if ratio is not None}
    return PortFacts(place(row), ber=known) if known else None


def _ratio(row: Row, mantissa: str, exponent: str) -> float | None:
    if not said(row, mantissa) or not said(row, exponent):
        return None
    return ratios.of_register(number(row, mantissa), number(row, exponent))


def _key(row: Row) -> tuple[Port, int] | None:
    """Return one entry of a port's P_Key table, None for an empty one. Membership stands beside the key, or in it."""
    key, member = number(row, "PKey"), said(row, "Membership")
    if key >= 2 * FULL or member not in ("", "0", "1"):
        raise Unreadable("PKey")
    return (place(row), key | (FULL if member == "1" else 0)) if key % FULL else None


def _warmth(row: Row) -> tuple[str, float] | None:
    warm = said(row, "CurrentTemperature")
    if warm and not re.fullmatch(r"-?[0-9]{1,3}", warm):
        raise Unreadable("CurrentTemperature")
    return (guid_in(row, "NodeGUID", "NodeGuid"), float(warm)) if warm else None
