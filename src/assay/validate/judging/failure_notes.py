"""Annotates outcomes: with the known issue that excuses a failure, with `observed`, and with failure artefacts.

That changes no verdict, and costs next to nothing for a pass. Artefacts are what a failure was judged on: the evidence
document, and the log lines that the failure is about.

Artefacts are named by the sha256 of their content, so equal ones are stored once: documents are in the evidence store
already, excerpts become `FOLDER/ab/<sha256>.txt`. A capture that fails gives an artefact without digest, whose name
says why; the others are not affected.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, find_object_path
from assay.model.faults.bmc_events import match_sel_event
from assay.model.faults.sightings import read_last_log_lines, read_log_lines
from assay.model.fleet import Fleet
from assay.model.outcome import FailureArtefact, Outcome
from assay.model.specs.fault_catalog import FaultCatalog
from assay.validate.judging.evidence_cache import CachedEvidence, EvidenceCache
from assay.validate.judging.verdict import CheckContext

if TYPE_CHECKING:
    from assay.validate.judging.session_outcome_file import OutcomeDelivery

MAX_EXCERPT_BYTES = 64 * 1024
"""Bytes of one excerpt; a longer one loses its first lines, since the last lines say most."""
CUT_NOTE = "… {} earlier lines left out\n"
MAX_QUOTED_LINES = 200
"""A quoted line is searched only among the last lines of a log, so that a failure with a long log costs little."""
SEVERITY_OF_COUNTER = {"critical_events": "Critical", "warning_events": "Warning"}
"""Measurements that count entries of a BMC's event log, each with the severity that it counts."""


class FailureArtefacts:
    """Captures the artefacts of one session: excerpts into `folder`; documents are in `objects` already."""

    def __init__(self, folder: Path, objects: Path, fleet: Fleet) -> None:
        self._folder = folder
        self._objects = objects
        self._fleet = fleet
        self._sizes: dict[str, int] = {}

    def capture(self, outcome: Outcome, context: CheckContext) -> tuple[FailureArtefact, ...]:
        """Return the artefacts of the documents that a failure was judged on."""
        artefacts: list[FailureArtefact] = []
        for name, document in context.documents.items():
            artefacts += _capture(f"evidence/{name}", partial(self._document, document))
            artefacts += _capture(f"log/{name}", partial(self._excerpt, outcome, document))
        return tuple(artefacts)

    @cached_property
    def _catalog(self) -> FaultCatalog | None:
        """The fleet's fault catalog, None where it is missing or wrong, which `assay check` reports."""
        try:
            return self._fleet.fault_catalog
        except AssayError:
            return None

    def _document(self, document: CachedEvidence) -> tuple[str, int]:
        """Return digest and size of a document. Raises OSError where the store does not hold it."""
        digest = document.digest
        if digest not in self._sizes:
            self._sizes[digest] = _read_size(self._objects, digest)
        return digest, self._sizes[digest]

    def _excerpt(self, outcome: Outcome, document: CachedEvidence) -> tuple[str, int] | None:
        """Store the log lines that a failure is about; None where there are none."""
        events = _event_lines(outcome, document.evidence, self._catalog)
        content = _format_excerpt([*events, *self._kernel_lines(outcome, document.evidence)])
        if not content:
            return None
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._sizes:
            _write_once(self._folder / digest[:2] / f"{digest}.txt", content)
            self._sizes[digest] = len(content)
        return digest, len(content)

    def _kernel_lines(self, outcome: Outcome, evidence: EvidenceDocument) -> Iterator[str]:
        """Yield kernel log lines: those that the reason quotes, and those that mean the failure's fault."""
        fault = self._catalog.find_class(outcome.fault) if self._catalog else None
        has_rules = fault is not None and bool(fault.kernel_log or fault.list_xid_names())
        lines = read_log_lines(evidence) if has_rules else read_last_log_lines(evidence, MAX_QUOTED_LINES)
        for line in lines:
            text = line["text"]
            if (text and text in outcome.reason) or (has_rules and self._means_fault(text, outcome.fault)):
                yield f"{line.get('source', 'kernel')} {line['seq']} [{line['t_s']:12.6f}] {text}"

    def _means_fault(self, text: str, fault: str) -> bool:
        return self._catalog is not None and any(
            match.name == fault or self._catalog.find_class(match.name) is self._catalog.find_class(fault)
            for match in self._catalog.kernel_log_matcher.find_faults(text)
        )


def _read_size(objects: Path, digest: str) -> int:
    """Return the size of a stored document, decompressed: the last four bytes of a gzip file say it."""
    with find_object_path(objects, digest).open("rb") as file:
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def artefact_folder(outcomes: Path) -> Path:
    """Return the folder of excerpts for a file of outcomes; all runs of a reports folder share one."""
    runs = outcomes.absolute().parent.parent
    return runs.parent / "artefacts" if runs.name == "runs" else outcomes.absolute().parent / "artefacts"


def _capture(name: str, capture: Callable[[], tuple[str, int] | None]) -> list[FailureArtefact]:
    """Return the captured artefact, or one whose name says why there is none."""
    try:
        captured = capture()
    except Exception as error:  # an artefact that fails must affect neither the verdict nor the other artefacts
        reason = error.strerror if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"
        return [FailureArtefact(f"{name}: not stored: {reason}"[:200], "", 0)]
    return [FailureArtefact(name, *captured)] if captured else []


def _event_lines(outcome: Outcome, evidence: EvidenceDocument, catalog: FaultCatalog | None) -> Iterator[str]:
    """Yield BMC event log entries that the reason quotes, that a measurement counts, or that mean the fault."""
    counted = {
        SEVERITY_OF_COUNTER[number.name] for number in outcome.measurements if number.name in SEVERITY_OF_COUNTER
    }
    fault = catalog.find_class(outcome.fault) if catalog else None
    has_rules = fault is not None and fault.sel is not None
    events = evidence.read("bmc", "events")
    entries = events.value if events.kind == "value" and isinstance(events.value, list) else []
    for event in entries if has_rules or counted else entries[-MAX_QUOTED_LINES:]:
        message, severity = str(event.get("message", "")), str(event.get("severity", ""))
        message_id = str(event.get("message_id", ""))
        means_fault = has_rules and catalog and match_sel_event(catalog, message_id, message, severity) == outcome.fault
        if (message and message in outcome.reason) or severity in counted or means_fault:
            yield f"sel {event.get('id', '')} {event.get('at', '')} {severity} {message}"


def _format_excerpt(lines: list[str]) -> bytes:
    """Return the lines as one text, without the first ones where all are too many."""
    size, first = 0, len(lines)
    while first and size + len(lines[first - 1].encode()) + 1 <= MAX_EXCERPT_BYTES:
        first -= 1
        size += len(lines[first].encode()) + 1
    head = CUT_NOTE.format(first) if first else ""
    return (head + "".join(f"{line}\n" for line in lines[first:])).encode()


def _write_once(path: Path, content: bytes) -> None:
    """Write a file atomically, unless it exists: files of one name have equal content."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.part")
    scratch.write_bytes(content)
    scratch.replace(path)


class OutcomeAnnotator:
    """Annotates the outcomes of one session. Artefacts go beside the file of outcomes; without one there are none."""

    def __init__(self, fleet: Fleet, delivery: OutcomeDelivery | None, evidence_cache: EvidenceCache) -> None:
        self._fleet = fleet
        self._delivery = delivery
        self._evidence_cache = evidence_cache
        self._observed = fleet.observed_checks

    def __call__(self, outcome: Outcome, context: CheckContext) -> Outcome:
        """Return the annotated outcome."""
        observed = outcome.check in self._observed
        if outcome.verdict == "fail":
            artefacts = self._artefacts.capture(outcome, context) if self._artefacts else ()
            return replace(outcome, known=self._find_excuse(outcome), observed=observed, artefacts=artefacts)
        return replace(outcome, observed=True) if observed else outcome

    @cached_property
    def _now(self) -> datetime:
        """The time of the run; for a session that stores none, the time of the first failure."""
        return datetime.fromisoformat(self._delivery.run.at) if self._delivery else datetime.now(UTC)

    @cached_property
    def _artefacts(self) -> FailureArtefacts | None:
        if self._delivery is None:
            return None
        return FailureArtefacts(artefact_folder(self._delivery.file), self._evidence_cache.objects, self._fleet)

    def _find_excuse(self, outcome: Outcome) -> str:
        """Return the link of the issue that excuses a failure, "" where none does."""
        from assay.model.specs.known_issues import find_known_issue

        node = self._fleet.nodes.get(outcome.node)
        issue = find_known_issue(self._fleet.known_issues, outcome, node, self._now)
        return issue.issue if issue else ""
