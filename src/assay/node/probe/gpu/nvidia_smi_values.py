"""Turns the text of nvidia-smi's elements into leaves: a value, unsupported by this GPU, or failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any
from xml.etree.ElementTree import Element

from assay.model.reading import LOST, ReadingTree, failed, unsupported, value

ElementQuestion = Callable[[Element], ReadingTree]

UNSUPPORTED_WORDS = {"n/a", "not supported", "function not found", "requested functionality has been deprecated"}
FAILURE_WORDS = (
    "err!",
    "error",
    "unknown",
    "requires reset",
    "requires restart",
    LOST,
    "unable to",
    "insufficient",
)
MIB = 2**20


def read_value(name: str, text: str | None, convert: Callable[[str], Any]) -> ReadingTree:
    """Return the leaf for an element's text (None: no such element), passed through `convert`."""
    words = " ".join((text or "").split()).strip("[]")
    if text is None:
        return unsupported(f"nvidia-smi prints no {name}")
    if words.casefold() in UNSUPPORTED_WORDS:
        return unsupported(f"nvidia-smi says {words}")
    if not words or _is_failure(words):
        return failed(words or f"nvidia-smi leaves {name} empty")
    try:
        return value(convert(words))
    except (ValueError, LookupError, ArithmeticError):
        return failed(f"{name}: cannot make sense of {words[:80]!r}")


def read_element(path: str, convert: Callable[[str], Any] = str) -> ElementQuestion:
    """Return the question for the element at `path` below a GPU's element."""
    return lambda gpu: read_value(path, find_text(gpu, path), convert)


def find_text(gpu: Element, path: str) -> str | None:
    """Return the text of an element; where it is missing, that of the nearest element around it that reports a failure.

    `<temperature>GPU is lost</temperature>` stands in place of all temperatures.
    """
    if (text := gpu.findtext(path)) is not None:
        return text
    names = path.split("/")
    around = (gpu.findtext("/".join(names[:depth])) for depth in range(len(names) - 1, 0, -1))
    return next((said for said in (*around, gpu.text) if _is_failure(said)), None)


def _is_failure(text: str | None) -> bool:
    return text is not None and any(failure in text.casefold() for failure in FAILURE_WORDS)


def read_first(*questions: ElementQuestion) -> ElementQuestion:
    """Return the question that asks each in turn until one is supported: older versions have other element names."""

    def ask(gpu: Element) -> ReadingTree:
        answers = [question(gpu) for question in questions]
        return next((answer for answer in answers if "unsupported" not in answer), answers[0])

    return ask


def read_sum(*questions: ElementQuestion) -> ElementQuestion:
    """Return the question for a sum; where one part has no value, the answer is that part's leaf."""

    def ask(gpu: Element) -> ReadingTree:
        answers = [question(gpu) for question in questions]
        unread = [answer for answer in answers if "value" not in answer]
        return unread[0] if unread else value(sum(answer["value"] for answer in answers))

    return ask


def read_active_names(prefixes: Sequence[str], names: Mapping[str, str]) -> ElementQuestion:
    """Return the question for the names of the elements that are Active.

    `names` maps our names to nvidia-smi's, without the prefix. The first of `prefixes` with elements counts.
    """

    def ask(gpu: Element) -> ReadingTree:
        for prefix in prefixes:
            answers = {
                ours: read_value(ours, find_text(gpu, prefix + theirs), parse_switch) for ours, theirs in names.items()
            }
            if any("value" in answer for answer in answers.values()):
                return value([name for name, answer in answers.items() if answer.get("value")])
            if failure := next((answer for answer in answers.values() if "failed" in answer), None):
                return failure
        return unsupported(f"nvidia-smi prints no {prefixes[0]}")

    return ask


def parse_amount(text: str) -> float:
    """Return the number before a unit: 68.57 of `68.57 W`. Raises ValueError, also where it is not finite."""
    amount = float(text.split(maxsplit=1)[0])
    if not isfinite(amount):
        raise ValueError(text)
    return amount


def parse_whole(text: str) -> int:
    """Return the whole number before a unit: 16 of `16x`, 2560 of `2560 bank(s)`."""
    return int(text.split(maxsplit=1)[0].removesuffix("x"))


def parse_mebibytes(text: str) -> int:
    """Return bytes of `81559 MiB`."""
    amount, unit = text.split()
    return int(amount) * {"MiB": MIB}[unit]


def parse_microseconds(text: str) -> int:
    """Return microseconds of `7015 us`."""
    amount, unit = text.split()
    return int(amount) * {"us": 1}[unit]


def parse_switch(text: str) -> bool:
    """Return whether a switch is on."""
    return {
        "enabled": True, "yes": True, "active": True, "true": True,
        "disabled": False, "no": False, "not active": False, "false": False,
    }[text.casefold()]  # fmt: skip


def parse_degraded(text: str) -> bool:
    """Return whether a bandwidth is less than full."""
    return {"degraded": True, "full": False}[text.casefold()]


def parse_word(text: str) -> str:
    """Return a word of a closed list in the probe's form: `drain_and_reset` for `Drain and Reset`."""
    return text.casefold().replace(" ", "_")
