"""Counts the errors of known drivers that no class has, by their form: in a log, or in the open faults of a fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from assay.decide.state.node_state import NodeState
from assay.model.evidence import EvidenceDocument
from assay.model.facts import fact
from assay.model.faults.fault_record import NOT_JUDGED
from assay.model.faults.sightings import read_log_lines
from assay.model.log_message import find_message_form
from assay.model.specs.fault_catalog import FaultCatalog

MOST_SEVERE = 0
"""The kernel's level that makes any message an error: what was recorded as one had an error's level or words."""
MOST_FORMS = 1000
FURTHER = "messages of further forms"
"""What stands for the forms beyond these: a log may say anything."""


@fact
class UnjudgedForm:
    """Messages of one form: they differ in numbers and addresses only."""

    form: str
    """The words of the message, with # for each address and number."""
    subsystem: str
    """Whose error it is, as the fault catalogue names it."""
    count: int
    """How often it came."""
    hosts: list[str]
    """The hosts or nodes that it came from; none if the log names no host."""
    example: str
    """The first such message."""


class UnjudgedCounter:
    """Counts messages by form."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._first: dict[str, tuple[str, str]] = {}

    def add(self, subsystem: str, text: str, host: str, count: int = 1) -> None:
        """Count a message."""
        form = find_message_form(text)
        if form not in self._counts and len(self._counts) >= MOST_FORMS:
            form = FURTHER
        self._first.setdefault(form, (subsystem, text))
        self._counts.setdefault(form, Counter())[host] += count

    def list_forms(self) -> list[UnjudgedForm]:
        """Return every form: first what came from most hosts, then what came most often."""
        forms = [
            UnjudgedForm(form, subsystem, counts.total(), sorted(filter(None, counts)), example)
            for form, counts in self._counts.items()
            for subsystem, example in [self._first[form]]
        ]
        return sorted(forms, key=lambda form: (-len(form.hosts), -form.count, form.form))


def count_evidence(catalog: FaultCatalog, evidence: EvidenceDocument) -> list[UnjudgedForm]:
    """Return the errors in the log lines of this evidence that no class has."""
    counter = UnjudgedCounter()
    for line in read_log_lines(evidence):
        if subsystem := catalog.kernel_log_matcher.find_unjudged(line["text"], line.get("level")):
            counter.add(subsystem, line["text"], evidence.node)
    return counter.list_forms()


def count_fleet(catalog: FaultCatalog, states: Iterable[NodeState]) -> list[UnjudgedForm]:
    """Return the messages that are open on the nodes, without those that the catalogue judges by now."""
    counter = UnjudgedCounter()
    find = catalog.kernel_log_matcher.find_unjudged
    for state in states:
        for fault in state.faults:
            if fault.is_open and fault.fault_class == NOT_JUDGED and (subsystem := find(fault.detail, MOST_SEVERE)):
                counter.add(subsystem, fault.detail, state.node, fault.count)
    return counter.list_forms()
