"""The middle values of the last days of each series, as of three days, by SQL that compares whole columns.

To sort a list for each series costs three times as much. The windows of the three days share five days, which are
sorted once; the two others of each window are then put among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.decide.trends.compared_days import DAYS_SEEN, RECENT, RECENT_DAYS

SHARED = sorted(set.intersection(*map(set, RECENT)))
"""The places of the days that all windows have."""
OTHERS = [[at for at in places if at not in SHARED] for places in RECENT]
LATER = sorted({*SHARED}.union(*OTHERS))
"""The places of the days that any window has."""
_EXCHANGES = (((1, 4), (2, 5)), ((1, 3), (2, 4)), ((1, 2), (3, 5)), ((2, 3), (4, 5)), ((3, 4),))
"""Five values are in order when the two of each pair have been. Pairs of one step have no value in common."""
_MIDDLE = (RECENT_DAYS + 1) // 2
_LAST = "'inf'::DOUBLE"
"""What is missing stands last."""
_STEP = "SELECT {columns} FROM {source}"
COUNTS = ", ".join(f"count_{seen}" for seen in range(DAYS_SEEN))


def count_values(places: Sequence[int]) -> str:
    """Return how many of these values there are."""
    return " + ".join(f"(v{at} IS NOT NULL)::TINYINT" for at in places)


def write_counts(source: str) -> str:
    """Return the query that adds `count_0`, … to a source with `v0`, …: how many values each window has."""
    shared = _STEP.format(columns=f"*, {count_values(SHARED)} AS count_shared", source=source)
    counts = (f"count_shared + {count_values(others)} AS count_{seen}" for seen, others in enumerate(OTHERS))
    return _STEP.format(columns=f"*, {', '.join(counts)}", source=f"({shared})")


def write_middles(source: str, keep: str) -> str:
    """Return the query for `low_0`, `high_0`, …: the one or two values in the middle of each window, NULL without any.

    `keep`: columns that it has too.
    """
    for step in _list_steps():
        made = (f"{value} AS {name}" for name, value in step.items())
        source = f"({_STEP.format(columns=', '.join([keep, COUNTS, *made]), source=source)})"
    return source


def _list_steps() -> Iterator[dict[str, str]]:
    """Yield the columns of each step, by those of the one before."""
    yield {f"v{at}": f"coalesce(v{at}, {_LAST})" for at in LATER}
    pairs: dict[str, str] = {}
    for seen, (one, other) in enumerate(OTHERS):
        pairs |= {f"less_{seen}": f"least(v{one}, v{other})", f"more_{seen}": f"greatest(v{one}, v{other})"}
    shared = {f"a{number}": f"v{at}" for number, at in enumerate(SHARED, 1)}
    yield shared | pairs
    for exchanges in _EXCHANGES:
        step = {name: name for name in (*shared, *pairs)}
        for one, other in exchanges:
            step |= {f"a{one}": f"least(a{one}, a{other})", f"a{other}": f"greatest(a{one}, a{other})"}
        yield step
    ranks = range(1, _MIDDLE + 1)
    yield {f"rank_{seen}_{rank}": _find_rank(seen, rank) for seen in range(DAYS_SEEN) for rank in ranks}
    middles: dict[str, str] = {}
    for seen in range(DAYS_SEEN):
        chosen = " ".join(f"WHEN {rank} THEN rank_{seen}_{rank}" for rank in ranks)
        middles[f"low_{seen}"] = f"CASE (count_{seen} + 1) // 2 {chosen} END"
        middles[f"high_{seen}"] = f"CASE count_{seen} // 2 + 1 {chosen} END"
    yield middles


def _find_rank(seen: int, rank: int) -> str:
    """Return the value of a rank among the five in order, `a1`, …, and the two of a window."""
    found = [f"a{rank}"]
    found.append(f"greatest(a{rank - 1}, less_{seen})" if rank > 1 else f"less_{seen}")
    if rank > 1:
        found.append(f"greatest(a{rank - 2}, more_{seen})" if rank > 2 else f"more_{seen}")
    return f"least({', '.join(found)})"
