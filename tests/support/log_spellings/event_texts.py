"""The same events of a BMC, as the tools of several vendors and locales print them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

START = datetime.fromisoformat("2026-11-21T18:00")


class Event(NamedTuple):
    """One event: IPMI's sensor and words, FreeIPMI's, and those of Dell and HPE. `is_over`: it ends one."""

    minute: int
    sensor: tuple[str, str]
    words: str
    free_words: str
    vendor_words: str
    level: str
    is_over: bool = False

    @property
    def at(self) -> datetime:
        return START + timedelta(minutes=self.minute)


EVENTS = (
    Event(0, ("Event Logging Disabled", "SEL"), "Log area reset/cleared", "Log Area Reset/Cleared", "Cleared.", "Ok"),
    Event(1, ("Power Supply", "PS1"), "Failure detected", "Failure detected", "Power supply 1 failed.", "Critical"),
    Event(
        7, ("Memory", "A4"), "Uncorrectable ECC", "Uncorrectable memory error", "Uncorrectable memory error", "Critical"
    ),
    Event(9, ("Power Supply", "PS2"), "Failure detected", "Failure detected", "Power supply 2 is good.", "Ok", True),
)
ASKED = {"bmc.event.power-supply": EVENTS[1].at, "bmc.event.memory.uncorrectable": EVENTS[2].at}
"""When each fault happened that these events are."""
LOCALES = {
    "C": "%m/%d/%y | %H:%M:%S UTC",
    "en_US": "%m/%d/%Y | %I:%M:%S %p UTC",
    "en_GB": "%d/%m/%y | %H:%M:%S UTC",
    "fr_FR": "%d/%m/%Y | %H:%M:%S UTC",
    "de_DE": "%d.%m.%Y | %H:%M:%S UTC",
    "sv_SE": "%Y-%m-%d | %H:%M:%S UTC",
    "ja_JP": "%Y年%m月%d日 | %H時%M分%S秒 UTC",
    "nl_NL": "%d-%m-%y | %H:%M:%S UTC",
    "before-1.8.19": "%m/%d/%Y | %H:%M:%S",
}
"""How ipmitool prints dates and times in some locales."""


@dataclass(frozen=True)
class Printed:
    """How one tool prints the events. `day_only`: without a time of day. `never_over`: it does not tell an end.

    `zone`: what it says of the zone, as an offset.
    """

    write: Callable[[Sequence[Event]], str]
    day_only: bool = False
    never_over: bool = False
    zone: str = ""


def _each(form: Callable[[int, Event], str], head: str = "") -> Callable[[Sequence[Event]], str]:
    return lambda events: head + "".join(f"{form(number, event)}\n" for number, event in enumerate(events, 1))


def _direction(event: Event, words: tuple[str, str] = ("Asserted", "Deasserted")) -> str:
    return words[event.is_over]


def _ipmitool(locale: str, split: str = " | ") -> Callable[[Sequence[Event]], str]:
    def row(number: int, event: Event) -> str:
        times = f"{event.at:{LOCALES[locale]}}".split(" | ")
        return split.join([f"{number:x}", *times, " ".join(event.sensor), event.words, _direction(event)])

    return _each(row)


def _verbose(date: str) -> Callable[[Sequence[Event]], str]:
    return _each(
        lambda number, event: (
            f"SEL Record ID          : {number:04x}\n Record Type           : 02\n"
            f" Timestamp             : {event.at:{date}}\n Generator ID          : 0020\n"
            f" Sensor Type           : {event.sensor[0]}\n Sensor Number         : 51\n"
            f" Event Direction       : {_direction(event, ('Assertion Event', 'Deassertion Event'))}\n"
            f" Event Data (RAW)      : 01ffff\n Description           : {event.words}\n\n"
            f"Sensor ID              : {event.sensor[1]} (0x51)\n Entity ID             : 10.1 (Power Supply)\n"
        )
    )


def _free(split: str, names: str, row: Callable[[Event], Sequence[str]]) -> Callable[[Sequence[Event]], str]:
    return _each(
        lambda number, event: split.join([str(number), f"{event.at:%b-%d-%Y}", f"{event.at:%H:%M:%S}", *row(event)]),
        f"{split.join(names.split(','))}\n" if names else "",
    )


def _named(event: Event) -> list[str]:
    return [event.sensor[1], event.sensor[0]]


def _with_direction(event: Event) -> list[str]:
    return [*_named(event), _direction(event, ("Assertion Event", "Deassertion Event")), event.free_words]


def _with_state(event: Event) -> list[str]:
    return [*_named(event), {"Ok": "Nominal"}.get(event.level, event.level), f"{event.free_words} ; Event Data3 = 34h"]


def _zone(locale: str) -> str:
    return "+00:00" if "UTC" in LOCALES[locale] else ""


def _hp(level: str) -> str:
    return {"Ok": "Informational"}.get(level, level)


PRINTED = {
    **{f"ipmitool-{locale}": Printed(_ipmitool(locale), zone=_zone(locale)) for locale in LOCALES},
    **{f"ipmitool-c-{locale}": Printed(_ipmitool(locale, ","), zone=_zone(locale)) for locale in LOCALES},
    "ipmitool-v": Printed(_verbose("%m/%d/%Y %H:%M:%S")),
    "ipmitool-v-1.8.19": Printed(_verbose("%m/%d/%y %m/%d/%y"), day_only=True),
    "ipmi-sel": Printed(
        _free(" | ", "ID,Date,Time,Name,Type,Event", lambda event: [*_named(event), event.free_words]), never_over=True
    ),
    "ipmi-sel-without-head": Printed(
        _free(" | ", "", lambda event: [*_named(event), event.free_words]), never_over=True
    ),
    "ipmi-sel-v": Printed(_free(" | ", "ID,Date,Time,Name,Type,Event Direction,Event", _with_direction)),
    "ipmi-sel-csv": Printed(
        _free(",", "ID,Date,Time,Name,Type,Event", lambda event: [*_named(event), event.free_words]), never_over=True
    ),
    "ipmi-sel-csv-state": Printed(_free(",", "ID,Date,Time,Name,Type,State,Event", _with_state)),
    "racadm-getsel": Printed(
        _each(
            lambda number, event: (
                f"Record:      {number}\nDate/Time:   {event.at:%m/%d/%Y %H:%M:%S}\nSource:      system\n"
                f"Severity:    {event.level}\nDescription: {event.vendor_words}\n{'-' * 79}"
            )
        )
    ),
    "racadm-lclog": Printed(
        lambda events: _each(
            lambda number, event: (
                f"SeqNumber       = {9 - number}\nMessage ID      = SYS0001\nCategory        = System\n"
                f"Severity        = {_hp(event.level)}\nTimestamp       = {event.at:%Y-%m-%d %H:%M:%S}\n"
                f"Message         = {event.vendor_words}\nMessage Arg   1 = 1\n"
                f"FQDD            = {event.sensor[1]}\n{'-' * 80}"
            )
        )(events[::-1])
    ),
}
