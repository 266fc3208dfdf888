"""What the words of nvidia-smi mean: a value, something that this GPU lacks, or something that went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any
from xml.etree.ElementTree import Element

from assay.model.reading import failed, unsupported, value
from assay.probe.files import Tree

Question = Callable[[Element], Tree]

LACKING = {"n/a", "not supported", "function not found", "requested functionality has been deprecated"}
WRONG = ("err!", "error", "unknown", "requires reset", "requires restart", "is lost", "unable to", "insufficient")
MIB = 2**20


def leaf(name: str, text: str | None, convert: Callable[[str], Any]) -> Tree:
    """Return what an element's text says, as `convert` understands it."""
    said = " ".join((text or "").split()).strip("[]")
    if text is None:
        return unsupported(f"nvidia-smi says nothing of {name}")
    if said.casefold() in LACKING:
        return unsupported(f"nvidia-smi says {said}")
    if not said or any(word in said.casefold() for word in WRONG):
        return failed(said or f"nvidia-smi leaves {name} empty")
    try:
        return value(convert(said))
    except (ValueError, LookupError, ArithmeticError):
        return failed(f"{name}: cannot make sense of {said[:80]!r}")


def at(path: str, convert: Callable[[str], Any] = str) -> Question:
    """Ask for the element at `path` below a GPU's own."""
    return lambda gpu: leaf(path, gpu.findtext(path), convert)


def either(*questions: Question) -> Question:
    """Ask each until one is answered: the same thing has other names in older versions."""

    def ask(gpu: Element) -> Tree:
        answers = [question(gpu) for question in questions]
        return next((answer for answer in answers if "unsupported" not in answer), answers[0])

    return ask


def total(*questions: Question) -> Question:
    """Ask for a sum; what cannot be told of one part cannot be told of the whole."""

    def ask(gpu: Element) -> Tree:
        answers = [question(gpu) for question in questions]
        silent = [answer for answer in answers if "value" not in answer]
        return silent[0] if silent else value(sum(answer["value"] for answer in answers))

    return ask


def active(prefixes: Sequence[str], names: Mapping[str, str]) -> Question:
    """Ask which of several elements say Active: our name → theirs, after whichever of the prefixes is used."""

    def ask(gpu: Element) -> Tree:
        for prefix in prefixes:
            said = {ours: leaf(ours, gpu.findtext(prefix + theirs), truth) for ours, theirs in names.items()}
            told = [name for name, answer in said.items() if "value" in answer]
            if told:
                return value([name for name in told if said[name]["value"]])
            if wrong := next((answer for answer in said.values() if "failed" in answer), None):
                return wrong
        return unsupported(f"nvidia-smi prints no {prefixes[0]}")

    return ask


def number(said: str) -> float:
    """Return the number before a unit: 68.57 of `68.57 W`. Raises ValueError, also for no finite number."""
    amount = float(said.split(maxsplit=1)[0])
    if not isfinite(amount):
        raise ValueError(said)
    return amount


def whole(said: str) -> int:
    """Return the whole number before a unit: 16 of `16x`, 2560 of `2560 bank(s)`."""
    return int(said.split(maxsplit=1)[0].removesuffix("x"))


def mebibytes(said: str) -> int:
    """Return bytes of `81559 MiB`."""
    amount, unit = said.split()
    return int(amount) * {"MiB": MIB}[unit]


def microseconds(said: str) -> int:
    """Return microseconds of `7015 us`."""
    amount, unit = said.split()
    return int(amount) * {"us": 1}[unit]


def truth(said: str) -> bool:
    """Return whether a switch is on."""
    return {
        "enabled": True, "yes": True, "active": True, "true": True,
        "disabled": False, "no": False, "not active": False, "false": False,
    }[said.casefold()]  # fmt: skip


def degraded(said: str) -> bool:
    """Return whether a bandwidth is less than full."""
    return {"degraded": True, "full": False}[said.casefold()]


def name(said: str) -> str:
    """Return a word of a closed list as the probe writes it: `drain_and_reset` of `Drain and Reset`."""
    return said.casefold().replace(" ", "_")
