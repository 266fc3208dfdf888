"""What a failure was judged on, kept to look at: the evidence document, and the lines of logs that its reason names.

Everything is named by the sha256 of its content, so what many failures share is there once: documents in the evidence
store, where they are already, excerpts as `FOLDER/ab/<sha256>.txt`. A capture that fails says so in its name, has no
digest, and loses nothing else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path

from assay.harness.judging.evidence_cache import CachedEvidence
from assay.harness.judging.verdict import CheckContext
from assay.lifecycle.faults.sightings import match_sel_event, read_last_log_lines, read_log_lines
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.outcome import FailureArtefact, Outcome
from assay.model.specs.fault_catalog import FaultCatalog, FaultClass

MAX_EXCERPT_BYTES = 64 * 1024
"""Bytes of one excerpt; of a longer one the beginning is cut off, since the last lines tell most."""
CUT_NOTE = "… {} lines before these\n"
MAX_QUOTED_LINES = 200
"""Last lines of a log among which a quoted one is looked for, so that a failure costs little however long the log."""
SEVERITY_OF_COUNTER = {"critical_events": "Critical", "warning_events": "Warning"}
"""Measurements that count entries of a BMC's event log, by the severity that they count."""


class FailureArtefacts:
    """Keeps what failures of one session were judged on. `folder` takes the excerpts, `objects` holds the documents."""

    def __init__(self, folder: Path, objects: Path, fleet: Fleet) -> None:
        self._folder, self._objects, self._fleet = folder, objects, fleet
        self._known: dict[str, int] = {}

    def capture(self, outcome: Outcome, trial: CheckContext) -> tuple[FailureArtefact, ...]:
        """Return what is kept of the documents that a failure was judged on."""
        found: list[FailureArtefact] = []
        for name, document in trial.documents.items():
            found += _capture(f"evidence/{name}", partial(self._document, document))
            found += _capture(f"log/{name}", partial(self._excerpt, outcome, document))
        return tuple(found)

    @cached_property
    def _catalog(self) -> FaultCatalog | None:
        """What means which fault; None where the catalogues do not say, of which `assay check` tells."""
        try:
            return self._fleet.fault_catalog
        except AssayError:
            return None

    def _document(self, document: CachedEvidence) -> tuple[str, int]:
        """Return digest and size of a document that the store holds. Raises OSError where it does not."""
        digest = document.digest
        if digest not in self._known:
            self._known[digest] = (self._objects / digest[:2] / f"{digest}.json").stat().st_size
        return digest, self._known[digest]

    def _excerpt(self, outcome: Outcome, document: CachedEvidence) -> tuple[str, int] | None:
        """Keep the lines that a failure is about; None where it is about none."""
        content = _last_lines(
            [*_event_lines(outcome, document.evidence, self._catalog), *self._lines(outcome, document.evidence)]
        )
        if not content:
            return None
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._known:
            _write_once(self._folder / digest[:2] / f"{digest}.txt", content)
            self._known[digest] = len(content)
        return digest, len(content)

    def _lines(self, outcome: Outcome, evidence: EvidenceDocument) -> Iterator[str]:
        """Yield lines in the kernel's form: those that the reason quotes, and those that mean the failure's fault."""
        fault = self._class_of(outcome)
        told = fault is not None and bool(fault.kernel_log or fault.list_xid_names())
        lines = read_log_lines(evidence) if told else read_last_log_lines(evidence, MAX_QUOTED_LINES)
        for line in lines:
            text = line["text"]
            if (text and text in outcome.reason) or (told and self._means_fault(text, outcome.fault)):
                yield f"{line.get('source', 'kernel')} {line['seq']} [{line['t_s']:12.6f}] {text}"

    def _means_fault(self, text: str, fault: str) -> bool:
        return self._catalog is not None and any(
            found.name == fault or self._catalog.find_class(found.name) is self._catalog.find_class(fault)
            for found in self._catalog.kernel_log_matcher.find_faults(text)
        )

    def _class_of(self, outcome: Outcome) -> FaultClass | None:
        return self._catalog.find_class(outcome.fault) if self._catalog else None


def artefact_folder(outcomes: Path) -> Path:
    """Return where excerpts belong that are kept beside a file of outcomes: those of all runs lie together."""
    runs = outcomes.absolute().parent.parent
    return runs.parent / "artefacts" if runs.name == "runs" else outcomes.absolute().parent / "artefacts"


def _capture(name: str, capture: Callable[[], tuple[str, int] | None]) -> list[FailureArtefact]:
    """Return what was captured, or what says why nothing could be."""
    try:
        kept = capture()
    except Exception as error:  # whatever went wrong here, the verdict stands and the rest is kept
        said = error.strerror if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"
        return [FailureArtefact(f"{name}: not kept: {said}"[:200], "", 0)]
    return [FailureArtefact(name, *kept)] if kept else []


def _event_lines(outcome: Outcome, evidence: EvidenceDocument, catalog: FaultCatalog | None) -> Iterator[str]:
    """Yield the entries of the BMC's event log that the reason quotes, counts, or that mean the failure's fault."""
    counted = {
        SEVERITY_OF_COUNTER[number.name] for number in outcome.measurements if number.name in SEVERITY_OF_COUNTER
    }
    fault = catalog.find_class(outcome.fault) if catalog else None
    told = fault is not None and fault.sel is not None
    events = evidence.read("bmc", "events")
    every = events.value if events.kind == "value" and isinstance(events.value, list) else []
    for event in every if told or counted else every[-MAX_QUOTED_LINES:]:
        message, severity = str(event.get("message", "")), str(event.get("severity", ""))
        means = (
            told and catalog and match_sel_event(catalog, str(event.get("message_id", "")), message) == outcome.fault
        )
        if (message and message in outcome.reason) or severity in counted or means:
            yield f"sel {event.get('id', '')} {event.get('at', '')} {severity} {message}"


def _last_lines(lines: list[str]) -> bytes:
    """Return the lines as they are kept, the last ones where all are too many."""
    size, first = 0, len(lines)
    while first and size + len(lines[first - 1].encode()) + 1 <= MAX_EXCERPT_BYTES:
        first -= 1
        size += len(lines[first].encode()) + 1
    head = CUT_NOTE.format(first) if first else ""
    return (head + "".join(f"{line}\n" for line in lines[first:])).encode()


def _write_once(path: Path, content: bytes) -> None:
    """Write a file whole, unless it is there: who wrote it wrote the same."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    scratch.write_bytes(content)
    scratch.replace(path)
