"""The fold of a node's starts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assay.act.boot.attempts import (
    BootAttempt,
    fold_attempts,
    make_failed_entry,
    make_stage_entry,
    make_started_entry,
    name_attempt,
)
from assay.model.specs.image import Image, ImageArtifact

NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)
IMAGE = Image(
    kind="Image",
    name="gpu-node",
    description="d",
    owner="o",
    sources=["s"],
    version="7",
    kernel=ImageArtifact(url="https://images.example/vmlinuz", sha256="a" * 64),
)


def test_an_attempt_knows_how_far_it_came_and_how_it_ended():
    start = make_started_entry("n1", "a1", IMAGE, NOW, effect="e1", nonce_sha256="d1")
    bare = BootAttempt("n1", "a1", NOW, "gpu-node", "7", "e1", "d1")
    assert fold_attempts([start]) == {"a1": bare}
    later = NOW + timedelta(minutes=1)
    entries = [start, make_stage_entry(bare, "kernel", later), make_stage_entry(bare, "pxe", later, words="late")]
    found = fold_attempts(entries)["a1"]
    assert (found.last_stage, found.failure, found.proven_by) == ("kernel", "", "")
    assert found.stages == {"kernel": later, "pxe": later}
    proven = make_stage_entry(bare, "cloud-init", later, proven_by="tpm")
    ended = fold_attempts([*entries, proven, make_failed_entry(found, "silent", later)])["a1"]
    assert (ended.last_stage, ended.failure, ended.proven_by) == ("cloud-init", "silent", "tpm")


def test_the_first_report_of_a_stage_counts_and_each_proof_is_recorded_once():
    bare = BootAttempt("n1", "a1", NOW, "gpu-node", "7")
    first, second = (make_stage_entry(bare, "pxe", NOW + timedelta(minutes=n)) for n in (1, 2))
    assert first.id == second.id
    assert first.id != make_stage_entry(bare, "pxe", NOW, proven_by="tpm").id


def test_entries_of_unknown_attempts_are_left_out():
    bare = BootAttempt("n1", "nobody", NOW, "gpu-node", "7")
    assert fold_attempts([make_stage_entry(bare, "pxe", NOW), make_failed_entry(bare, "x", NOW)]) == {}


def test_names_do_not_come_twice():
    assert len({name_attempt("n1") for _ in range(100)}) == 100
