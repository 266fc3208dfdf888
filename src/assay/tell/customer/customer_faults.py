"""Faults of a node in a customer's words: what happened to which part, and what it means for jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from assay.model.faults.fault_record import SEVERITIES, FaultSeverity
from assay.model.specs.customers import SINCE, FaultCustomerWords
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import format_minute, format_time

MAX_SHOWN = 3
UNNAMED_TEST = "A test of the node failed."
UNKNOWN_FAULT = "A fault of the node's hardware or software was reported."
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_PARTS = (
    (re.compile(r"gpu(\d{1,3})"), "GPU {}"),
    (re.compile(r"(mlx5_\d{1,3}|hca\d{1,3})"), "InfiniBand port {}"),
    (re.compile(r"nvme(\d{1,3})"), "drive {}"),
    (re.compile(r"psu ?(\d{1,3})"), "power supply {}"),
    (re.compile(r"fan ?(\d{1,3})"), "fan {}"),
    (re.compile(r"nvswitch(\d{1,3})"), "GPU switch {}"),
)
"""Other parts, such as an alert's, may be anybody's text and are not shown."""
_CODE = re.compile(r" ?\((?:S?XIDs? )?[\d, ]+\)| ?\(S?XID[^)]*\)")


@dataclass(frozen=True, slots=True)
class ReasonFault:
    """A fault, or a failed test with its fault class ("" for none), on a part ("" for the node). `at` is ISO 8601."""

    fault_class: str
    part: str
    severity: FaultSeverity
    at: str


@dataclass(frozen=True, slots=True)
class PlainFault:
    """Faults with the same words: the sentence, the parts, when the first was seen, and what that means for jobs.

    `also_before`: they may have harmed jobs before they were seen.
    """

    happened: str
    parts: tuple[str, ...]
    at: str
    means: str
    also_before: bool = False


def describe_faults(catalog: FaultCatalog | None, faults: Iterable[ReasonFault]) -> list[PlainFault]:
    """Return the faults in plain words, the worst first. Faults with the same words are one."""
    plain: dict[str, PlainFault] = {}
    for fault in sorted(
        faults, key=lambda fault: (SEVERITIES.index(fault.severity), format_time(fault.at), fault.part)
    ):
        words = _find_words(catalog, fault.fault_class)
        known = plain.get(words.happened, PlainFault(words.happened, (), fault.at, words.means, words.also_before))
        name = name_part(fault.part)
        parts = known.parts if not name or name in known.parts else (*known.parts, name)
        at = min(known.at, fault.at, key=format_time)
        plain[known.happened] = replace(known, parts=parts, at=at)
    return list(plain.values())


def name_part(part: str) -> str:
    """Return the name of a part, such as `GPU 3` for `gpu3`; "" for a part whose name is not for customers."""
    for pattern, name in _PARTS:
        if match := pattern.fullmatch(part.lower()):
            return name.format(match[1])
    return ""


def format_faults(faults: Sequence[PlainFault]) -> Iterator[str]:
    """Yield a line for each fault, at most MAX_SHOWN, and one that says how many more there are."""
    for fault in faults[:MAX_SHOWN]:
        parts, more_parts = [*fault.parts], len(fault.parts) - MAX_SHOWN
        if more_parts > 1:
            parts[MAX_SHOWN:] = [f"{spell_number(more_parts)} more parts"]
        where = f" ({join_words(parts)})" if parts else ""
        yield f"{format_minute(format_time(fault.at))}: {fault.happened.rstrip('.')}{where}."
    if (more := len(faults) - MAX_SHOWN) > 0:
        yield f"And {spell_number(more)} more {'fault' if more == 1 else 'faults'}."


def format_consequences(faults: Sequence[PlainFault], emptied_at: str = "") -> Iterator[str]:
    """Yield what the shown faults mean for jobs, each text once.

    What was first seen after the node was empty (`emptied_at`, "" for never) harmed no job.
    """
    harmful = (
        fault
        for fault in faults[:MAX_SHOWN]
        if fault.also_before or not emptied_at or format_time(fault.at) <= emptied_at
    )
    texts = (fault.means.replace(SINCE, format_minute(format_time(fault.at))) for fault in harmful)
    yield from dict.fromkeys(filter(None, texts))


def join_words(words: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def spell_number(number: int) -> str:
    """Return a number in words up to twelve, in digits above."""
    return NUMBERS[number] if 0 <= number < len(NUMBERS) else str(number)


def _find_words(catalog: FaultCatalog | None, name: str) -> FaultCustomerWords:
    """Return the words of a class. What happened is by default the first sentence of its summary."""
    fault = catalog.find_class(name) if catalog else None
    if fault is None:
        return FaultCustomerWords(happened=UNKNOWN_FAULT if name else UNNAMED_TEST)
    if fault.for_customers.happened:
        return fault.for_customers
    summary = _CODE.sub("", fault.summary).partition(". ")[0].partition(": ")[0].rstrip(".")
    happened = UNKNOWN_FAULT if "XID" in summary else f"{summary}."
    return fault.for_customers.model_copy(update={"happened": happened})
