"""Makes outcomes of the rows of a run's file, in the order of subject and check."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from assay.model.evidence import UNKNOWN_BASIS, EvidenceBasis
from assay.model.outcome import VERDICTS, FailureArtefact, Measurement, Outcome

T = TypeVar("T")
OutcomeKey = tuple[int, int]
"""Numbers of subject and check."""
StoredRow = tuple[Any, ...]
_NO_DOCUMENT = ("", "", UNKNOWN_BASIS)


class RowsByOutcome:
    """Rows that belong to outcomes, read in step with these: both come in the same order.

    `key` is the outcome of the next row.
    """

    def __init__(self, rows: Iterator[StoredRow], make: Callable[[StoredRow], T]) -> None:
        self._rows, self._make = rows, make
        self._step()

    def of(self, key: OutcomeKey) -> tuple[Any, ...]:
        """Return the values of one outcome; to be called for each outcome in order, but for those before `key`."""
        found = []
        while self.key <= key:
            if self.key == key:
                found.append(self._make(self._next[2:]))
            self._step()
        return tuple(found)

    def _step(self) -> None:
        self._next = next(self._rows, ())
        self.key: tuple[float, ...] = self._next[:2] or (math.inf,)


class SharedValues:
    """The values that the outcomes of a run share, by number. A join for each outcome takes longer."""

    def __init__(self, connection: sqlite3.Connection, judged_by: Callable[[str, str], str]) -> None:
        self._judged_by, query = judged_by, connection.execute
        self._subjects = {row[0]: row[1:] for row in query("SELECT id, name, node FROM subject")}
        self._texts = dict(query("SELECT id, text FROM text"))
        self._checks = {
            number: (name, fault, tuple(json.loads(phases)), bool(active))
            for number, name, fault, phases, active in query("SELECT id, name, fault, phases, active FROM check_")
        }
        self._documents = {
            number: (digest, at, EvidenceBasis.decode(basis or ""))
            for number, digest, at, basis in query("SELECT id, digest, at, basis FROM document")
        }

    def make_outcome(
        self, row: StoredRow, measurements: tuple[Measurement, ...], artefacts: tuple[FailureArtefact, ...]
    ) -> Outcome:
        """Return the outcome of a row."""
        subject_number, check_number, verdict, reason, document, micros, known, observed = row
        subject, node = self._subjects[subject_number]
        check, fault, phases, active = self._checks[check_number]
        evidence, evidence_at, basis = self._documents[document] if document else _NO_DOCUMENT
        return Outcome(
            check=check,
            subject=subject,
            node=node,
            verdict=VERDICTS[verdict],
            reason=self._texts[reason] if reason else "",
            fault=fault,
            phases=phases,
            active=active,
            evidence=evidence,
            evidence_at=evidence_at,
            duration_s=micros / 1e6,
            measurements=measurements,
            known=self._texts[known] if known else "",
            observed=bool(observed),
            artefacts=artefacts,
            basis=basis,
            judged_by=self._judged_by(node, check),
        )
