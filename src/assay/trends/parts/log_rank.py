"""Whether groups of parts last differently: the log-rank test, for any number of groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from assay.trends.parts.survival_curves import Life, RiskStep, list_risk_steps


def compare_groups(groups: Mapping[str, Sequence[Life]]) -> float | None:
    """Return how probable such a difference is by chance. None: there are not two groups at risk with a failure."""
    lives = [[life for life in group if life.left > life.entered] for group in groups.values()]
    steps = list(list_risk_steps(life for group in lives for life in group))
    surpluses, variances = _compare_each(lives, steps)
    kept = [place for place, row in enumerate(variances) if row[place] > 0][:-1]
    if not kept:
        return None
    matrix = [[variances[one][other] for other in kept] for one in kept]
    solved = _solve(matrix, [surpluses[place] for place in kept])
    statistic = sum(surpluses[place] * weight for place, weight in zip(kept, solved, strict=True))
    return find_chi_square_tail(max(0.0, statistic), len(kept))


def _compare_each(lives: Sequence[Sequence[Life]], steps: Sequence[RiskStep]) -> tuple[list[float], list[list[float]]]:
    """Return by how many failures each group exceeds its share, and the covariances of that."""
    size = len(lives)
    surpluses = [float(sum(life.failed for life in group)) for group in lives]
    variances = [[0.0] * size for _ in lives]
    counts = [_count_at_risk(group, [step.days for step in steps]) for group in lives]
    for number, (_, failed, at_risk) in enumerate(steps):
        shares = [group[number] / at_risk for group in counts]
        spread = failed * (at_risk - failed) / (at_risk - 1) if at_risk > 1 else 0.0
        for one, share in enumerate(shares):
            surpluses[one] -= failed * share
            variances[one][one] += spread * share
            for other, its in enumerate(shares):
                variances[one][other] -= spread * share * its
    return surpluses, variances


def _count_at_risk(lives: Sequence[Life], ages: Sequence[float]) -> list[int]:
    """Return how many of a group are at risk at each of these ages, in their order."""
    entered, left = sorted(life.entered for life in lives), sorted(life.left for life in lives)
    counts, begun, gone = [], 0, 0
    for age in ages:
        while begun < len(entered) and entered[begun] < age:
            begun += 1
        while gone < len(left) and left[gone] < age:
            gone += 1
        counts.append(begun - gone)
    return counts


def _solve(matrix: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """Return x of `matrix` · x = `values` (Gauss, with pivots). A row of zeros gives 0."""
    rows = [[*row, value] for row, value in zip(matrix, values, strict=True)]
    size = len(rows)
    for place in range(size):
        best = max(range(place, size), key=lambda number: abs(rows[number][place]))
        rows[place], rows[best] = rows[best], rows[place]
        pivot = rows[place][place]
        if abs(pivot) < 1e-12:
            continue
        for number in range(size):
            if number != place:
                factor = rows[number][place] / pivot
                rows[number] = [a - factor * b for a, b in zip(rows[number], rows[place], strict=True)]
    return [row[-1] / row[place] if abs(row[place]) >= 1e-12 else 0.0 for place, row in enumerate(rows)]


def find_chi_square_tail(statistic: float, degrees: int) -> float:
    """Return the chance of a chi-square above `statistic`: Q(degrees / 2, statistic / 2), from its recurrence in a."""
    half = statistic / 2
    if half <= 0:
        return 1.0
    a, tail = (0.5, math.erfc(math.sqrt(half))) if degrees % 2 else (1.0, math.exp(-half))
    while a < degrees / 2:
        tail += math.exp(a * math.log(half) - half - math.lgamma(a + 1))
        a += 1
    return min(1.0, tail)
