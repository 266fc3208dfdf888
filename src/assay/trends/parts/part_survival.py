"""How long parts last, compared by delivery, SKU, position or rack: for people who plan, and for vendors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.trends.parts.log_rank import compare_groups
from assay.trends.parts.part_stays import FailureTimes, PartStay, list_lives
from assay.trends.parts.survival_curves import Life, SurvivalCurve, SurvivalPoint, estimate_survival
from assay.trends.parts.weibull_shape import WeibullShape, estimate_shape

if TYPE_CHECKING:
    from assay.trends.shapes.part_answers import GroupSurvivalAnswer, KindSurvivalAnswer, TraitComparisonAnswer

Trait = Literal["batch", "sku", "position", "rack"]
TRAITS: tuple[Trait, ...] = ("batch", "sku", "position")
KNOWN_TRAITS: tuple[Trait, ...] = (*TRAITS, "rack")
LEAST_PARTS = 20
LEAST_P = 1e-12
"""Smaller ones are not told: no data are that certain."""
MOST_GROUPS = 12
"""More groups than that are no picture; the largest are compared."""
AGES = (30.0, 90.0, 180.0, 365.0, 730.0, 1461.0, 2922.0)
SHOWN_AGES = 3
UNNAMED = "not known"


@dataclass(frozen=True, slots=True)
class GroupSurvival:
    """The parts of a kind that share a trait. `shape`: None below 20 failures."""

    name: str
    parts: int
    curve: SurvivalCurve
    shape: WeibullShape | None

    def list_points(self, ages: Iterable[float]) -> list[tuple[float, SurvivalPoint | None]]:
        """Return what still works at some ages, None beyond what was seen."""
        return [(age, self.curve.at(age)) for age in ages]

    def as_json(self) -> GroupSurvivalAnswer:
        """Return plain JSON data, with every step of the curve."""
        return {
            "name": self.name,
            "parts": self.parts,
            "failures": self.curve.failures,
            "part_days": round(self.curve.days, 1),
            "shown_until_days": round(self.curve.last, 1),
            "weibull_shape": self.shape and [round(value, 3) for value in self.shape],
            "curve": [[round(value, 5) for value in point] for point in self.curve.points],
        }


@dataclass(frozen=True, slots=True)
class TraitComparison:
    """The largest groups of one trait, by name. `p`: of the log-rank test, None where nothing can be compared.

    `small`: how many groups have too few parts, or are beyond the most that are compared.
    """

    trait: Trait
    groups: tuple[GroupSurvival, ...]
    p: float | None
    small: int

    @property
    def difference(self) -> str:
        """Whether the groups differ, in words."""
        if self.p is None:
            return "cannot be compared, as nothing failed"
        return f"log-rank p {self.p:.2g}" if self.p >= LEAST_P else f"log-rank p < {LEAST_P:g}"

    def as_json(self) -> TraitComparisonAnswer:
        """Return plain JSON data."""
        groups = [group.as_json() for group in self.groups]
        return {"by": self.trait, "log_rank_p": self.p, "left_out": self.small, "groups": groups}


@dataclass(frozen=True, slots=True)
class KindSurvival:
    """All parts of a kind, and their comparisons. Nobody is compared where all parts are of one group."""

    kind: str
    everybody: GroupSurvival
    comparisons: tuple[TraitComparison, ...]

    @property
    def ages(self) -> tuple[float, ...]:
        """The ages at which people are told what still works: the last few that were seen."""
        return tuple(age for age in AGES if age <= self.everybody.curve.last)[-SHOWN_AGES:]

    def as_json(self) -> KindSurvivalAnswer:
        """Return plain JSON data."""
        compared = [one.as_json() for one in self.comparisons]
        return {"kind": self.kind, "all": self.everybody.as_json(), "comparisons": compared}


def measure_survival(
    stays: Iterable[PartStay], failures: FailureTimes, today: float, traits: Sequence[Trait] = TRAITS, kind: str = ""
) -> list[KindSurvival]:
    """Return how long the parts of each kind last, those with the most failures first. `kind`: only that one."""
    by_kind: dict[str, list[tuple[PartStay, Life]]] = defaultdict(list)
    for stay, life in list_lives((one for one in stays if not kind or one.kind == kind), failures, today):
        by_kind[stay.kind].append((stay, life))
    found = [_measure_kind(name, lives, traits) for name, lives in by_kind.items()]
    return sorted(found, key=lambda one: (-one.everybody.curve.failures, one.kind))


def _measure_kind(kind: str, lives: Sequence[tuple[PartStay, Life]], traits: Sequence[Trait]) -> KindSurvival:
    compared = [_compare(trait, lives) for trait in traits]
    return KindSurvival(kind, _describe("all", lives), tuple(one for one in compared if len(one.groups) > 1))


def _compare(trait: Trait, lives: Sequence[tuple[PartStay, Life]]) -> TraitComparison:
    groups: dict[str, list[tuple[PartStay, Life]]] = defaultdict(list)
    for stay, life in lives:
        groups[str(getattr(stay, trait)) or UNNAMED].append((stay, life))
    described = {name: _describe(name, own) for name, own in groups.items()}
    large = [one for one in described.values() if one.parts >= LEAST_PARTS]
    shown = sorted(large, key=lambda one: (-one.parts, one.name))[:MOST_GROUPS]
    p = compare_groups({one.name: [life for _, life in groups[one.name]] for one in shown})
    return TraitComparison(trait, tuple(sorted(shown, key=lambda one: one.name)), p, len(groups) - len(shown))


def _describe(name: str, lives: Sequence[tuple[PartStay, Life]]) -> GroupSurvival:
    own = [life for _, life in lives]
    return GroupSurvival(name, _count_parts(stay for stay, _ in lives), estimate_survival(own), estimate_shape(own))


def _count_parts(stays: Iterable[PartStay]) -> int:
    """Return how many parts there are: by serial, or by place where that is not known."""
    counted: Mapping[tuple[str, ...], int] = Counter(
        (one.serial,) if one.serial else (one.node, one.subject, str(one.since)) for one in stays
    )
    return len(counted)
