"""How far a run is, by pool."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence

from assay.harness.reconcile import Due
from assay.harness.shards import Shard
from assay.harness.store.read import Stored
from assay.model.errors import Trouble

Far = Mapping[str, tuple[int, int]]
"""Outcomes that are there, and those that are due, by pool (of fabrics: by `fabric`)."""
_DONE = """
SELECT substr(s.name, 1, instr(s.name, '/') - 1), sum(o.n)
FROM (SELECT subject, count(*) AS n FROM outcome GROUP BY subject) o JOIN subject s ON s.id = o.subject GROUP BY 1
"""


class Progress:
    """Counts what is done of what is due, from the shards' own files."""

    def __init__(self, due: Due) -> None:
        self._due, self._over, self._going = by_pool(due), Counter[str](), dict[int, Counter[str]]()

    def look(self, running: Sequence[Shard], over: Sequence[Shard] = ()) -> Far:
        """Return how far all is. A shard is over once, and is never read again."""
        for shard in over:
            self._going.pop(shard.number, None)
            self._over += _done(shard)
        for shard in running:
            self._going[shard.number] = _done(shard)
        done = sum(self._going.values(), self._over)
        return {pool: (done[pool], due) for pool, due in self._due.items()}


def by_pool(due: Due) -> Counter[str]:
    """Return how many outcomes are due of each pool."""
    found, checks = Counter[str](), Counter(check.subject for check in due.checks)
    for kind, times in checks.items():
        pools = Counter(subject.partition("/")[0] for subject in due.subjects[kind])
        found.update({pool: count * times for pool, count in pools.items()})
    return found


def _done(shard: Shard) -> Counter[str]:
    """Return what is there of a shard; nothing where its file cannot be read just now, as on another machine."""
    try:
        with Stored.open(shard.store) as stored:
            return Counter(dict(stored.connection.execute(_DONE)))
    except (Trouble, sqlite3.Error):
        return Counter()
