"""What the words of nvidia-smi mean: a value, something that this GPU lacks, or something that went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any
from xml.etree.ElementTree import Element

from assay.model.reading import failed, unsupported, value
from assay.probe.node_access import Tree

ElementQuestion = Callable[[Element], Tree]

UNSUPPORTED_WORDS = {"n/a", "not supported", "function not found", "requested functionality has been deprecated"}
FAILURE_WORDS = (
    "err!",
    "error",
    "unknown",
    "requires reset",
    "requires restart",
    "is lost",
    "unable to",
    "insufficient",
)
MIB = 2**20


def read_value(name: str, text: str | None, convert: Callable[[str], Any]) -> Tree:
    """Return what an element's text says, as `convert` understands it."""
    said = " ".join((text or "").split()).strip("[]")
    if text is None:
        return unsupported(f"nvidia-smi says nothing of {name}")
    if said.casefold() in UNSUPPORTED_WORDS:
        return unsupported(f"nvidia-smi says {said}")
    if not said or any(word in said.casefold() for word in FAILURE_WORDS):
        return failed(said or f"nvidia-smi leaves {name} empty")
    try:
        return value(convert(said))
    except (ValueError, LookupError, ArithmeticError):
        return failed(f"{name}: cannot make sense of {said[:80]!r}")


def read_element(path: str, convert: Callable[[str], Any] = str) -> ElementQuestion:
    """Ask for the element at `path` below a GPU's own."""
    return lambda gpu: read_value(path, gpu.findtext(path), convert)


def read_first(*questions: ElementQuestion) -> ElementQuestion:
    """Ask each until one is answered: the same thing has other names in older versions."""

    def ask(gpu: Element) -> Tree:
        answers = [question(gpu) for question in questions]
        return next((answer for answer in answers if "unsupported" not in answer), answers[0])

    return ask


def read_sum(*questions: ElementQuestion) -> ElementQuestion:
    """Ask for a sum; what cannot be told of one part cannot be told of the whole."""

    def ask(gpu: Element) -> Tree:
        answers = [question(gpu) for question in questions]
        silent = [answer for answer in answers if "value" not in answer]
        return silent[0] if silent else value(sum(answer["value"] for answer in answers))

    return ask


def read_active_names(prefixes: Sequence[str], names: Mapping[str, str]) -> ElementQuestion:
    """Ask which of several elements say Active: our name → theirs, after whichever of the prefixes is used."""

    def ask(gpu: Element) -> Tree:
        for prefix in prefixes:
            said = {
                ours: read_value(ours, gpu.findtext(prefix + theirs), parse_switch) for ours, theirs in names.items()
            }
            told = [name for name, answer in said.items() if "value" in answer]
            if told:
                return value([name for name in told if said[name]["value"]])
            if wrong := next((answer for answer in said.values() if "failed" in answer), None):
                return wrong
        return unsupported(f"nvidia-smi prints no {prefixes[0]}")

    return ask


def parse_amount(said: str) -> float:
    """Return the number before a unit: 68.57 of `68.57 W`. Raises ValueError, also for no finite number."""
    amount = float(said.split(maxsplit=1)[0])
    if not isfinite(amount):
        raise ValueError(said)
    return amount


def parse_whole(said: str) -> int:
    """Return the whole number before a unit: 16 of `16x`, 2560 of `2560 bank(s)`."""
    return int(said.split(maxsplit=1)[0].removesuffix("x"))


def parse_mebibytes(said: str) -> int:
    """Return bytes of `81559 MiB`."""
    amount, unit = said.split()
    return int(amount) * {"MiB": MIB}[unit]


def parse_microseconds(said: str) -> int:
    """Return microseconds of `7015 us`."""
    amount, unit = said.split()
    return int(amount) * {"us": 1}[unit]


def parse_switch(said: str) -> bool:
    """Return whether a switch is on."""
    return {
        "enabled": True, "yes": True, "active": True, "true": True,
        "disabled": False, "no": False, "not active": False, "false": False,
    }[said.casefold()]  # fmt: skip


def parse_degraded(said: str) -> bool:
    """Return whether a bandwidth is less than full."""
    return {"degraded": True, "full": False}[said.casefold()]


def parse_word(said: str) -> str:
    """Return a word of a closed list as the probe writes it: `drain_and_reset` of `Drain and Reset`."""
    return said.casefold().replace(" ", "_")
