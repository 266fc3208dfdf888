"""Whether two runs came to the same in every byte that judging decides: all of an outcome but how long it took."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from assay.harness.results.lined_up import FROM_NEW, LinedUp
from assay.harness.results.wanted import EVERYTHING

EXAMPLES = 5


@dataclass(frozen=True)
class Sameness:
    """How many outcomes both runs have, and how many only one; how many of both differ, and differ in the verdict."""

    both: int
    alone: int
    differing: int
    verdicts: int
    examples: tuple[tuple[str, str], ...]

    @property
    def identical(self) -> bool:
        """Whether nothing differs."""
        return not self.differing and not self.alone

    @property
    def agrees(self) -> bool:
        """Whether all verdicts are the same."""
        return not self.verdicts and not self.alone


def sameness(old: Path, new: Path) -> Sameness:
    """Compare two runs outcome by outcome, measurements and artefacts too. Raises Trouble for what is no run."""
    sides = LinedUp(old, new, EVERYTHING)
    try:
        both = sides.count(f"SELECT count(*) FROM {FROM_NEW}")
        alone = sum(sides.count(f"SELECT count(*) FROM {side}.outcome") - both for side in ("old", "new"))
        differing, verdicts, examples = 0, 0, list[tuple[str, str]]()
        for check, subject, verdict in sides.connection.execute(_DIFFERING):
            differing, verdicts = differing + 1, verdicts + verdict
            if len(examples) < EXAMPLES:
                examples.append((check, subject))
        return Sameness(both, alone, differing, verdicts, tuple(examples))
    finally:
        sides.close()


_BESIDE = """
(SELECT count(*) FROM new.{0} m WHERE m.subject = n.subject AND m.check_ = n.check_)
  != (SELECT count(*) FROM old.{0} m WHERE m.subject = o.subject AND m.check_ = o.check_)
OR EXISTS (SELECT 1 FROM new.{0} m {1} WHERE m.subject = n.subject AND m.check_ = n.check_ AND NOT EXISTS (
  SELECT 1 FROM old.{0} p {2} WHERE p.subject = o.subject AND p.check_ = o.check_ AND {3}))
"""
_GAUGE = " AND ".join(f"g.{one} IS h.{one}" for one in ("name", "unit", "at_least", "at_most", "source"))
_MEASURED = _BESIDE.format(
    "measurement",
    "JOIN new.gauge g ON g.id = m.gauge",
    "JOIN old.gauge h ON h.id = p.gauge",
    f"p.n = m.n AND p.value = m.value AND {_GAUGE}",
)
_KEPT = _BESIDE.format("artefact", "", "", "p.name = m.name AND p.digest = m.digest AND p.bytes = m.bytes")
_SHARED = " OR ".join(
    [
        *(f"c1.{one} != c2.{one}" for one in ("fault", "phases", "active")),
        "s1.node != s2.node",
        *(f"d1.{one} IS NOT d2.{one}" for one in ("digest", "at")),
        "r1.text IS NOT r2.text",
        "k1.text IS NOT k2.text",
    ]
)
_DIFFERING = f"""
SELECT c1.name, s1.name, n.verdict != o.verdict FROM {FROM_NEW}
JOIN new.check_ c1 ON c1.id = n.check_ JOIN old.check_ c2 ON c2.id = o.check_
JOIN new.subject s1 ON s1.id = n.subject JOIN old.subject s2 ON s2.id = o.subject
LEFT JOIN new.document d1 ON d1.id = n.document LEFT JOIN old.document d2 ON d2.id = o.document
LEFT JOIN new.text r1 ON r1.id = n.reason LEFT JOIN old.text r2 ON r2.id = o.reason
LEFT JOIN new.text k1 ON k1.id = n.known LEFT JOIN old.text k2 ON k2.id = o.known
WHERE n.verdict != o.verdict OR n.observed IS NOT o.observed OR {_SHARED} OR {_MEASURED} OR {_KEPT}
"""
