"""The evidence store: what goes in comes out under its hash, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model import evidence as evidence_objects
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.reading import absent, failed, unsupported, value
from assay.model.timestamps import parse_time
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

RECORDINGS = ROOT / "suites" / "recordings"
AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
LEAVES = st.builds(value, PLAIN) | st.sampled_from([absent, unsupported, failed]).flatmap(
    lambda k: st.builds(k, st.text())
)
TREES = st.recursive(LEAVES, lambda inner: st.dictionaries(st.text(), inner, max_size=4), max_leaves=12)
DOCUMENTS = st.builds(
    EvidenceDocument,
    st.from_regex(r"n[0-9]{4}", fullmatch=True),
    st.datetimes(datetime(1970, 1, 1), datetime(2999, 12, 30), timezones=st.just(UTC)),  # noqa: DTZ001  # st adds the zone
    st.dictionaries(st.sampled_from(["probe", "bmc", "active"]), TREES),
)


def evidence(node: str = "n0007", at: datetime = AT, **channels: Any) -> EvidenceDocument:
    return EvidenceDocument(node, at, channels or {"probe": failed("no answer within 5 s")})


@given(DOCUMENTS)
def test_every_document_comes_back_as_it_was_under_its_own_digest(document: EvidenceDocument) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = EvidenceStore(Path(folder))
        digest = store.store_latest(document)
        assert digest == document.digest() == store.get(digest).digest()
        assert store.get(digest) == store.latest(document.node) == document


@given(PLAIN, st.randoms())
def test_the_canonical_form_depends_on_the_content_only(plain: Any, chance: random.Random) -> None:
    assert encode_canonical_json(_shuffled(plain, chance)) == encode_canonical_json(plain)
    assert encode_canonical_json(json.loads(encode_canonical_json(plain))) == encode_canonical_json(plain)


def _shuffled(plain: Any, chance: random.Random) -> Any:
    if isinstance(plain, list):
        return [_shuffled(one, chance) for one in plain]
    if not isinstance(plain, dict):
        return plain
    keys = list(plain)
    chance.shuffle(keys)
    return {key: _shuffled(plain[key], chance) for key in keys}


def test_the_newest_document_of_a_node_is_the_one_stored_last(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path)
    older, newer = store.store_latest(evidence()), store.store_latest(evidence(at=AT + timedelta(hours=1)))
    assert store.latest("n0007") == store.get(newer)
    assert store.get(older).at == AT


def test_storing_the_same_document_twice_keeps_one_object(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path)
    assert store.store_latest(evidence()) == store.store_latest(evidence())
    assert len(list(tmp_path.glob("objects/*/*"))) == 1


@pytest.mark.parametrize("after", [None, 34])
def test_the_time_of_the_newest_is_its_own_and_not_that_of_its_file(tmp_path: Path, after: int | None) -> None:
    store = EvidenceStore(tmp_path)
    assert store.read_time("n0007") == ""
    store.store_latest(replace(evidence(at=AT), after_entry=after))
    os.utime(tmp_path / "latest/n0007.json", (0, 0))
    assert parse_time(store.read_time("n0007")) == AT
    (tmp_path / "latest/n0007.json").write_text("damaged")
    assert store.read_time("n0007") == ""


def test_a_node_that_was_never_observed_has_no_latest(tmp_path: Path) -> None:
    assert EvidenceStore(tmp_path).latest("n0001") is None


def test_evidence_that_was_changed_after_it_was_stored_is_refused(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path)
    digest = store.store_latest(evidence())
    path = next(tmp_path.glob("objects/*/*.json.gz"))
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"n0007", b"n0008")))
    with pytest.raises(AssayError, match="was changed after it was stored: its sha256 is"):
        store.get(digest)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda packed: packed[:-9], "its end is gone"),
        (lambda packed: packed[:2], "its end is gone"),
        (lambda packed: packed + b"x", "bytes follow its end"),
        (lambda packed: packed[:-6] + b"\0\0" + packed[-4:], "its compression is damaged"),
        (lambda packed: b"\x1f\x8b" + b"\0" * 40, "its compression is damaged"),
        (lambda packed: b"", "its sha256 is e3b0c44298fc"),
    ],
    ids=["cut", "only-its-start", "longer", "other-checksum", "no-gzip", "empty"],
)
def test_a_damaged_object_is_told_with_what_to_do(tmp_path: Path, damage: Callable[[bytes], bytes], says: str) -> None:
    store = EvidenceStore(tmp_path)
    digest = store.store_document(evidence())
    path = next(tmp_path.glob("objects/*/*.json.gz"))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(AssayError) as told:
        store.get(digest)
    assert says in str(told.value)
    assert (str(path) in str(told.value), "restore the file from a backup" in str(told.value)) == (True, True)


def test_an_object_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = EvidenceStore(tmp_path)
    large = evidence(probe={"text": {"value": "x" * 20_000}})
    digest = store.store_document(large)
    monkeypatch.setattr(evidence_objects, "MAX_OBJECT_BYTES", 10_000)
    with pytest.raises(AssayError, match="decompressed, it has more than"):
        store.get(digest)
    with pytest.raises(AssayError, match="the document has 0 MB, of at most"):
        store.store_document(replace(large, node="n0008"))


def test_objects_are_compressed_the_same_way_each_time_and_their_digest_is_that_of_the_json(tmp_path: Path) -> None:
    document = EvidenceDocument.from_json(json.loads((RECORDINGS / "hgx-h100.json").read_text()))
    files = []
    for name in ("a", "b"):
        digest = EvidenceStore(tmp_path / name).store_document(document)
        files.append(tmp_path / name / "objects" / digest[:2] / f"{digest}.json.gz")
    content = gzip.decompress(files[0].read_bytes())
    assert hashlib.sha256(content).hexdigest() == document.digest()
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size * 6 < len(content)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 64])
def test_a_digest_that_names_nothing_here_is_refused(tmp_path: Path, digest: str) -> None:
    with pytest.raises(AssayError):
        EvidenceStore(tmp_path).get(digest)


@pytest.mark.parametrize("name", ["", "../n1", "a/b", ".hidden"])
def test_a_name_that_would_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AssayError, match="cannot name a file"):
        EvidenceStore(tmp_path).store_latest(evidence(name))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"schema": "assay.evidence/1"}', b"\xff"])
def test_a_damaged_latest_is_told_not_raised_as_a_traceback(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "latest").mkdir()
    (tmp_path / "latest/n1.json").write_bytes(content)
    with pytest.raises(AssayError, match="not an evidence document"):
        EvidenceStore(tmp_path).latest("n1")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("in the way")
    with pytest.raises(AssayError, match="cannot be written"):
        EvidenceStore(tmp_path).store_latest(evidence())


WRITER = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from assay.model.evidence import EvidenceDocument
from assay.observe.evidence_store import EvidenceStore
store, step = EvidenceStore(Path(sys.argv[1])), 0
while True:
    tree = {"host": {"text": {"value": "x" * 200_000}, "step": {"value": step}}}
    at = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=step)
    store.store_latest(EvidenceDocument("n0007", at, {"probe": tree}))
    step += 1
    print(step, flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_whole_documents_only(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path)
    for round_ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout
        writer.stdout.readline()
        time.sleep(0.003 + 0.004 * round_)
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        objects = [*tmp_path.glob("objects/*/[0-9a-f]*.json.gz")]
        assert objects
        for path in objects:
            assert hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest() == path.name.removesuffix(".json.gz")
        latest = store.latest("n0007")
        assert latest is not None
        assert store.get(latest.digest()) == latest
