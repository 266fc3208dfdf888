"""Evidence of another machine is judged by no check but those that ask which machine it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.node import Node
from assay.model.outcome import CheckSubject
from assay.model.timestamps import parse_time
from assay.validate.judging.evidence_cache import EvidenceCache, ReadingUnavailable
from assay.validate.judging.verdict import CheckContext, find_pass_objection

OWN, OTHER = "A520112X4400003", "A520112X4400002"
NODES = {"n0003": Node("n0003", "h100-a", "lab1", "r01", 1, OWN, "hgx-h100", "managed")}


def ask(folder: Path, serial: str, *, stranger: str = "", fault: str = "gpu.missing") -> CheckContext:
    """Return the context of a check on a node whose evidence tells this serial number."""
    channels = {"probe": {"host": {"serial": {"value": serial}}}}
    evidence = EvidenceDocument("n0003", parse_time("2026-11-21T08:00:00Z"), channels, 7, stranger)
    (folder / "latest").mkdir()
    (folder / "latest/n0003.json").write_bytes(encode_canonical_json(evidence.as_json()))
    cache = EvidenceCache(folder / "latest", NODES)
    return CheckContext("suites/x.py::test_x", CheckSubject("h100-a", "n0003"), "n0003", cache, fault=fault)


@pytest.mark.parametrize(("serial", "stranger"), [(OTHER, ""), (OWN, "GPU-b answers; it should be GPU-a")])
def test_evidence_of_another_machine_is_an_error_that_tells_both_and_names_the_document(
    tmp_path: Path, serial: str, stranger: str
) -> None:
    context = ask(tmp_path, serial, stranger=stranger)
    for _ in range(2):
        with pytest.raises(ReadingUnavailable, match=r"of another machine: .* answers; it should be "):
            context.read_document("n0003")
    assert isinstance(find_pass_objection(context), ReadingUnavailable), "also if the check went on"
    outcome = context.make_outcome("error", "", 0.0)
    assert (len(outcome.evidence), outcome.basis.serial) == (64, serial)


def test_a_check_of_the_identity_itself_reads_it(tmp_path: Path) -> None:
    document = ask(tmp_path, OTHER, fault="identity.changed").read_document("n0003")
    assert document.evidence.read("probe", "host", "serial").value == OTHER


@pytest.mark.parametrize("serial", [OWN, f" {OWN.lower()} ", "Default string"])
def test_the_declared_machine_and_one_that_tells_no_number_are_judged(tmp_path: Path, serial: str) -> None:
    assert ask(tmp_path, serial).read_document("n0003").stranger == ""
