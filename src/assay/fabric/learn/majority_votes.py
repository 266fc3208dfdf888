"""Majorities: what most of many observations say, so that a few wrong ones change nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping


def join_groups(members: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the groups that the pairs join."""
    group_of = {member: {member} for member in members}
    for a, b in pairs:
        if group_of[a] is not group_of[b]:
            group_of[a] |= group_of[b]
            for member in group_of[b]:
                group_of[member] = group_of[a]
    return list({id(group): group for group in group_of.values()}.values())


def vote(ballots: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the number that most ballots have for each name."""
    count: dict[str, Counter[int]] = defaultdict(Counter)
    for name, number in ballots:
        count[name][number] += 1
    return {name: numbers.most_common(1)[0][0] for name, numbers in count.items()}


def vote_apart(ballots: Iterable[tuple[str, int]], group_of: Mapping[str, object]) -> dict[str, int]:
    """Return the number that most ballots have for each name; no two names of a group have the same, if they need not.

    The surest come first. Of equal ones, the name with the first ballot has the lowest number.
    """
    count: dict[str, Counter[int]] = defaultdict(Counter)
    for name, number in ballots:
        count[name][number] += 1
    best = {name: sorted(numbers.items(), key=lambda item: (-item[1], item[0])) for name, numbers in count.items()}
    margin = {name: first[1] - (others[0][1] if others else 0) for name, (first, *others) in best.items()}
    taken: set[tuple[object, int]] = set()
    found: dict[str, int] = {}
    for name in sorted(best, key=lambda name: -margin[name]):
        numbers = [number for number, _ in best[name]]
        found[name] = next((one for one in numbers if (group_of.get(name), one) not in taken), numbers[0])
        taken.add((group_of.get(name), found[name]))
    return found


def find_mode(numbers: Iterable[int]) -> int:
    """Return the most frequent number."""
    return Counter(numbers).most_common(1)[0][0]


def find_most_frequent(texts: Iterable[str]) -> str:
    """Return the most frequent text, the first of several, "" if there is none."""
    counts = Counter(texts)
    return max(counts, key=lambda text: counts[text], default="")


def find_usual_range(ports: Iterable[int], share: float = 0.5, strays: int = 0) -> range:
    """Return the range of the ports that are used more often than `share` of the usual and more than `strays` times.

    If there are none, it has all ports.
    """
    count = Counter(ports)
    usual = find_mode(count.values())
    known = [port for port, times in count.items() if times > max(usual * share, strays)] or list(count)
    return range(min(known), max(known) + 1)
