"""`measure(name, seen, at_least=…)`: write a number down, hold it to a limit, say both in one line."""

from __future__ import annotations

from typing import Any

from assay.harness.silence import Unjudgeable
from assay.harness.told import Told, plainly
from assay.harness.trial import Trial
from assay.model.outcome import Measurement
from assay.model.units import unit_of_name

LARGEST, FARTHEST = 2**63, 2**1023
"""Whole numbers below the first are written down as such, below the second as floats; what is beyond is no measure."""
NUMBERS = (int, float)  # a tuple of types is looked through faster than a union of them


class Measure:
    """Records what a check saw and asserts what was expected of it.

    Numbers are recorded with unit, limits and the line where the limit is written; text can only be held `equals`.
    Raises AssertionError with what was seen and expected, Unjudgeable for what cannot be compared.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def __call__(
        self,
        name: str,
        seen: Any,
        *,
        at_least: Any = None,
        at_most: Any = None,
        equals: Any = None,
        unit: str = "",
        place: str = "",
    ) -> None:
        """Measure one thing. `unit` is the unit of what was seen, where its reading's name does not say it.

        `place` says where it was measured, for the reason of a failure.

        A limit in another unit cannot be held: that is an error, and no comparison takes place.
        """
        __tracebackhide__ = True
        low, high = (equals, equals) if equals is not None else (at_least, at_most)
        unit = agreed(name, unit, seen, low, high)
        if _is_number(seen):
            self._record(name, seen, low, high, unit)
        elif equals is None or type(seen) is bool is not type(equals):
            raise Unjudgeable(f"{name} is {seen!r}, which is no number to hold to a limit")
        if not _holds(seen, at_least, at_most, equals):
            shown = " ".join(part for part in (name, plainly(seen), unit, place) if part)
            raise AssertionError(f"{shown}, {expectation(at_least, at_most, equals)}")

    def _record(self, name: str, seen: Any, low: Any, high: Any, unit: str) -> None:
        if not (_can_be_compared(seen) and _can_be_compared(low) and _can_be_compared(high)):
            wrong = [bound for bound in (seen, low, high) if bound is not None and not _is_number(bound)]
            raise Unjudgeable(f"{name} cannot be compared: {seen!r} with {wrong[0] if wrong else (low, high)!r}")
        source = getattr(low, "source", "") or getattr(high, "source", "")
        self._trial.measurements.append(Measurement(name, _bare(seen), unit, _bare(low), _bare(high), source))


def agreed(name: str, unit: str, seen: Any, *bounds: Any) -> str:
    """Return the one unit that a check, the name of its reading and its limits have. Raises Unjudgeable for two.

    "" where none of them has any.
    """
    read = seen.path[-1] if isinstance(seen, Told) and seen.path else ""
    its = unit
    for one in (unit_of_name(read), *[bound.unit for bound in bounds if isinstance(bound, Told)]):
        if one and its and one != its:
            raise _disagreement(name, unit, read, bounds)
        its = its or one
    return its


def _disagreement(name: str, unit: str, read: str, bounds: tuple[Any, ...]) -> Unjudgeable:
    """Return the complaint that says who says which unit: the first that does, and the first that says otherwise."""
    said = [("the check", unit), (f"its reading {read}", unit_of_name(read))]
    said += [(f"the limit ({bound.source})", bound.unit) for bound in bounds if isinstance(bound, Told)]
    (one, its), *others = [(who, its) for who, its in said if its]
    other, another = next((who, of) for who, of in others if of != its)
    return Unjudgeable(f"{name} cannot be compared: {one} says {its}, {other} says {another}")


def expectation(at_least: Any = None, at_most: Any = None, equals: Any = None) -> str:
    """Return what was expected and where that is written, as words."""
    named = (("at least", at_least), ("at most", at_most), ("", equals))
    parts = [f"{word} {plainly(bound)}".strip() for word, bound in named if bound is not None]
    sources = [bound.source for _, bound in named if getattr(bound, "source", "")]
    source = f" ({', '.join(dict.fromkeys(sources))})" if sources else ""
    return f"expected {' and '.join(parts)}{source}" if parts else "no limit"


def _holds(seen: Any, at_least: Any, at_most: Any, equals: Any) -> bool:
    return bool(
        (at_least is None or seen >= at_least)
        and (at_most is None or seen <= at_most)
        and (equals is None or seen == equals)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, NUMBERS) and type(value) is not bool


def _can_be_compared(value: Any) -> bool:
    return value is None or (_is_number(value) and abs(value) < FARTHEST)  # which no NaN is


def _bare(value: Any) -> Any:
    """Return the number without what it remembers, as JSON and databases want it; a counter may end at 2⁶⁴-1."""
    if value is None:
        return None
    return int(value) if isinstance(value, int) and abs(value) < LARGEST else float(value)
