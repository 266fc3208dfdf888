"""One repair: the discrepancies that have one common cause, and so are one ticket. Plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay.fabric.compare.discrepancy import CablingDiscrepancy


@dataclass(frozen=True, slots=True)
class CablingRepair:
    """The work of one ticket. `cause` identifies what the members have in common, "" for a single discrepancy."""

    members: tuple[CablingDiscrepancy, ...]
    cause: str = ""
    title: str = ""
    likely_cause: str = ""

    @property
    def first(self) -> CablingDiscrepancy:
        """The discrepancy, or the first of several."""
        return self.members[0]


def group_by_key(
    found: Sequence[CablingDiscrepancy],
    kind: str,
    list_keys: Callable[[CablingDiscrepancy], Iterable[tuple[str, ...]]],
) -> Iterator[tuple[tuple[str, ...], tuple[CablingDiscrepancy, ...]]]:
    """Yield the discrepancies of a kind by what they have in common. One with several keys is in several groups."""
    groups: dict[tuple[str, ...], list[CablingDiscrepancy]] = {}
    for discrepancy in found:
        if discrepancy.kind == kind:
            for key in dict.fromkeys(list_keys(discrepancy)):
                groups.setdefault(key, []).append(discrepancy)
    yield from ((key, tuple(members)) for key, members in groups.items())
