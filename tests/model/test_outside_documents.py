"""What is wrong with a document from outside is named by its place, and its values are never shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from assay.adapters.prometheus.alerts import parse_alertmanager_payload
from assay.model.errors import AssayError
from assay.model.evidence import EVIDENCE_SCHEMA, EvidenceDocument
from assay.model.outside_documents import describe_mistakes, find_evidence_mistakes
from assay.validate.must_fail_recordings import read_check_recording
from tests.support.places import ROOT

RECORDINGS = ROOT / "suites" / "recordings"
SECRET = "hunter2"


def make_document(**changed: Any) -> dict[str, Any]:
    channels = {"probe": {"host": {"hostname": {"value": "n1"}, "serial": {"absent": "no such file"}}}}
    return EvidenceDocument("n1", datetime(2026, 1, 5, tzinfo=UTC), channels).as_json() | changed


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.json")))
def test_our_own_recordings_are_evidence_documents(name: str) -> None:
    assert find_evidence_mistakes(read_check_recording(RECORDINGS, name)) == ""


def test_the_schema_names_the_same_version_as_the_code() -> None:
    assert find_evidence_mistakes(make_document()) == ""
    assert find_evidence_mistakes(make_document(schema="assay.evidence/2")) == f"schema: not {EVIDENCE_SCHEMA}"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (make_document(channels=[SECRET]), "channels: no object"),
        (make_document(channels={"probe": {"host": SECRET}}), "channels.probe.host: no object"),
        (make_document(channels={"probe": {"gpu": {"failed": 3}}}), "channels.probe.gpu.failed: no string"),
        (make_document(channels={"bmc": {"x": {"value": float("nan")}}}), "the document: it is no JSON"),
        (make_document(channels={"bmc": {"x": {"value": {1}}}}), "the document: it is no JSON"),
        ({"schema": EVIDENCE_SCHEMA, "at": "now", "channels": {}}, "the document: 'node' is a required property"),
        (make_document(odd=SECRET), "the document: only schema, node, at, channels, after_entry, stranger are known"),
        ([SECRET], "the document: no object"),
    ],
)
def test_each_mistake_has_its_place_and_no_value(document: Any, said: str) -> None:
    told = find_evidence_mistakes(document)
    assert told.startswith(said)
    assert SECRET not in told


def test_all_mistakes_are_named_up_to_five() -> None:
    two = make_document(channels={"bmc": 1, "probe": 2})
    assert find_evidence_mistakes(two) == "channels.bmc: no object; channels.probe: no object"
    many = make_document(channels=dict.fromkeys("abcdefg", 1))
    assert find_evidence_mistakes(many).endswith("channels.e: no object; and 2 more")


class Order(BaseModel):
    count: int
    at: datetime


def test_mistakes_that_pydantic_finds_are_named_alike() -> None:
    with pytest.raises(ValidationError) as raised:
        Order.model_validate({"count": SECRET})
    told = describe_mistakes(raised.value, "the body")
    assert told.startswith("count: Input should be a valid integer")
    assert told.endswith("; at: Field required")
    assert SECRET not in told


def test_a_webhook_is_told_each_mistake() -> None:
    alerts = [{"status": SECRET, "labels": {}}, {"status": "firing", "labels": 3}]
    with pytest.raises(AssayError) as refused:
        parse_alertmanager_payload(json.dumps({"version": "4", "alerts": alerts}).encode())
    assert "alerts.0.status: " in refused.value.what
    assert "alerts.1.labels: " in refused.value.what
    assert SECRET not in refused.value.what


@pytest.mark.parametrize(("text", "said"), [("{", "the file is no JSON"), ("{}", "'schema' is a required")])
def test_a_recording_that_is_none_is_told_with_its_file(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "hgx.json").write_text(text)
    with pytest.raises(AssayError, match=said) as refused:
        read_check_recording(tmp_path, "hgx")
    assert refused.value.where == str(tmp_path / "hgx.json")
