"""What failed alike: outcomes whose reasons are the same but for names and numbers are told once."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from assay.harness.results.wanted import Chosen
from assay.harness.store.tables import VERDICTS
from assay.model.outcome import Verdict

_NUMBERS = re.compile(r"\b\w*(?:\d\w*|(?<=\d)[.,](?=\d))+")
"""Numbers, and all that has a digit in it: GUIDs, serial numbers, digests, `gpu3`."""


@dataclass(frozen=True, slots=True)
class Group:
    """Outcomes that did not pass, for one reason. `check` is "" where several checks say the same.

    `places` are the nodes, or the racks and fabrics; `example` is the (check, subject, reason) of the first of them.
    """

    verdict: Verdict
    check: str
    known: str
    observed: bool
    decides: bool
    outcomes: int
    checks: int
    places: tuple[str, ...]
    example: tuple[str, str, str]


def alike(connection: sqlite3.Connection, chosen: Chosen, most: int = -1) -> list[Group]:
    """Return the groups of all that did not pass, at most so many; what counts and is widest spread first."""
    connection.create_function("shape", 2, shape, deterministic=True)
    where, values = chosen.where("o", "o.verdict != 0")
    return [_group(row) for row in connection.execute(_ALIKE.format(where=where), [*values, most])]


def shape(reason: str | None, node: str) -> str:
    """Return a reason without what differs from node to node: the node's name, and words with digits."""
    return _shape((reason or "").replace(node, "0") if node else reason or "")


@lru_cache(4096)
def _shape(reason: str) -> str:
    return _NUMBERS.sub("0", reason)


_FAIL = VERDICTS.index("fail")
_ALIKE = f"""
SELECT o.verdict, CASE o.verdict WHEN {_FAIL} THEN c.name ELSE '' END AS what, coalesce(k.text, '') AS known,
  o.observed IS NOT NULL AS observed, count(*) AS outcomes, count(DISTINCT c.name) AS checks,
  group_concat(DISTINCT coalesce(nullif(s.node, ''), s.name)) AS places, count(DISTINCT o.subject) AS subjects,
  c.name, min(s.name), coalesce(r.text, ''), o.verdict != {VERDICTS.index("skip")} AS bad
FROM outcome o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_
LEFT JOIN text r ON r.id = o.reason LEFT JOIN text k ON k.id = o.known{{where}}
GROUP BY o.verdict, what, known, observed, shape(r.text, s.node)
ORDER BY bad DESC, known != '' OR observed, o.verdict, subjects DESC, outcomes DESC, min(s.name), c.name LIMIT ?
"""


def _group(row: tuple[Any, ...]) -> Group:
    verdict, check, known, observed, outcomes, checks, places, _, name, subject, reason, bad = row
    return Group(
        verdict=VERDICTS[verdict],
        check=check or (name if checks == 1 else ""),
        known=known,
        observed=bool(observed),
        decides=bool(bad) and not known and not observed,
        outcomes=outcomes,
        checks=checks,
        places=tuple(places.split(",")),
        example=(name, subject, reason),
    )
