"""What Slurm's programs print is read in the forms of several versions, and what they cannot say is said in words."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from assay.adapters.slurm.client import parse_jobs, parse_nodes
from assay.adapters.slurm.cordon import find_slurm_cordon, is_closed_in_slurm
from assay.adapters.slurm.jobs import occupies_node
from assay.model.cordon_ownership import display_reason, is_our_reason, is_untampered, prefix_reason, tag_reason
from assay.model.errors import AssayError
from assay.model.text.lists import expand_node_set
from tests.support.reserved_ports import reserve_ports
from tests.support.slurm_cluster import needs_slurm
from tests.support.slurm_room import adapter

ANYTHING = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=12,
)


def one_node(**words: Any) -> Any:
    return parse_nodes({"nodes": [{"name": "n1", **words}]})["n1"]


@pytest.mark.parametrize(
    "words",
    [
        {"state": "idle", "state_flags": ["DRAIN"], "reason": "fans", "reason_changed_at": 7},
        {"state": ["IDLE", "DRAIN"], "reason": "fans", "reason_changed_at": {"set": True, "number": 7}},
    ],
    ids=["22.05", "23.11"],
)
def test_a_drained_node_reads_the_same_in_old_and_new_slurm(words: dict[str, Any]):
    assert find_slurm_cordon(one_node(**words)) == "fans"
    assert one_node(**words).changed == 7


@pytest.mark.parametrize(
    "words",
    [
        {"job_state": "RUNNING", "nodes": "n[1-2]", "start_time": 60, "preempt_time": 0},
        {"job_state": ["RUNNING"], "nodes": "n1,n2", "start_time": {"set": True, "infinite": False, "number": 60}},
    ],
    ids=["22.05", "23.11"],
)
def test_a_job_reads_the_same_in_old_and_new_slurm(words: dict[str, Any]):
    (job,) = parse_jobs({"jobs": [{"job_id": 1, **words}]})
    assert (job.nodes, job.since) == (("n1", "n2"), "1970-01-01T00:01:00+00:00")


@pytest.mark.parametrize("state", ["COMPLETING", "SUSPENDED", "CONFIGURING", "STAGE_OUT", "SOMETHING_NEW"])
def test_what_is_neither_waiting_nor_over_is_on_its_node(state: str):
    (job,) = parse_jobs({"jobs": [{"job_id": 1, "job_state": state}]})
    assert occupies_node(job)


def test_a_crash_that_slurm_saw_itself_is_no_cordon_that_lasts():
    crashed = one_node(state="down", state_flags=["NOT_RESPONDING"], reason="Not responding")
    assert find_slurm_cordon(crashed) == "DOWN in Slurm: Not responding"
    assert not is_closed_in_slurm(crashed), "it ends by itself, so a cordon of ours is needed"
    assert is_closed_in_slurm(one_node(state="down", state_flags=["NOT_RESPONDING"], reason="bob: PSU smells"))


@given(ANYTHING)
def test_whatever_is_printed_is_read_or_is_trouble(document: Any):
    for read in (parse_nodes, parse_jobs):
        for words in ({"nodes": document, "jobs": document}, {"nodes": [document], "jobs": [document]}):
            try:
                read(words)
            except AssayError:
                continue


NODE = {"name": "n1", "state": "idle"}
JOB = {"job_id": 1, "job_state": "RUNNING", "nodes": "n1"}
NUMBERS = ("reason_changed_at", "start_time", "end_time", "preempt_time")
FIELDS = (
    *NODE,
    *JOB,
    *NUMBERS,
    "state_flags",
    "reason",
    "reason_set_by_user",
    "comment",
    "name",
    "user_name",
    "requeue",
)
LARGE = some.sampled_from(
    [2**32 - 2, 2**64 - 2, -(2**40), 10**30, {"set": True, "number": 2**64 - 1}, "n[1-9" + "9" * 30]
)


@example({"start_time": 2**64 - 2})
@example({"comment": 7})
@given(some.dictionaries(some.sampled_from(FIELDS), ANYTHING | LARGE, min_size=1, max_size=3))
def test_whatever_stands_in_a_field_is_read_or_is_trouble(spoilt: dict[str, Any]):
    with suppress(AssayError):
        (node,) = parse_nodes({"nodes": [{**NODE, **spoilt}]}).values()
        assert isinstance(find_slurm_cordon(node), str | None)
        assert is_closed_in_slurm(node) in (True, False)
    with suppress(AssayError):
        (job,) = parse_jobs({"jobs": [{**JOB, **spoilt}]})
        assert job.since == "" or job.since > "1970"
        assert occupies_node(job) in (True, False)


@pytest.mark.parametrize("none", [2**32 - 2, 2**32 - 1, 2**64 - 2, {"set": True, "infinite": True, "number": 0}])
def test_what_slurm_writes_for_no_time_is_none(none: Any):
    (job,) = parse_jobs({"jobs": [{**JOB, "start_time": none, "end_time": none}]})
    assert (job.since, job.end_time) == ("", 0)


@given(some.text())
def test_a_reason_of_ours_is_known_again_and_a_changed_one_is_not(text: str):
    written = tag_reason(text)
    assert is_untampered(written)
    assert display_reason(written) == display_reason(tag_reason(display_reason(written))), (
        "nothing grows by being read and written again"
    )
    assert not set(written) & set('"\n\\')
    for changed in (f"{written}; bob", f"bob: {written}", written[:-1], written.replace(" #", "! #")):
        assert not is_our_reason(display_reason(changed, "bob"))
        assert "bob" in display_reason(changed, "bob") or not changed.startswith("assay:")


@given(some.text())
def test_a_reason_by_hand_is_never_ours(text: str):
    assert not is_untampered(prefix_reason(text.replace("#", "")))


@pytest.fixture(scope="module")
def nobody(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A slurm.conf whose slurmctld is not there."""
    tmp_path = tmp_path_factory.mktemp("nobody")
    words = ["ClusterName=x", "SlurmctldHost=localhost(127.0.0.1)", f"SlurmctldPort={reserve_ports(1)[0]}"]
    words += ["AuthType=auth/none", "CredType=cred/none", "MessageTimeout=2", "NodeName=n1", "PartitionName=p Nodes=n1"]
    (tmp_path / "slurm.conf").write_text("\n".join(words) + "\n")
    return str(tmp_path / "slurm.conf")


@needs_slurm
@settings(max_examples=25)
@given(
    some.lists(
        some.tuples(some.sampled_from(["n", "gpu-", "r1c"]), some.integers(0, 120), some.integers(0, 30)),
        min_size=1,
        max_size=4,
    )
)
def test_hosts_are_those_that_scontrol_names(nobody: str, ranges: list[tuple[str, int, int]]):
    text = ",".join(f"{stem}[{first:03d}-{first + more:03d},7]" for stem, first, more in ranges)
    command, conf = ["scontrol", "show", "hostnames", text], {**os.environ, "SLURM_CONF": nobody}
    own = subprocess.run(command, capture_output=True, text=True, check=True, env=conf)
    assert list(expand_node_set(text)) == own.stdout.split()


ASKED: dict[str, Callable[[Any], object]] = {
    "jobs": lambda slurm: slurm.list_jobs("n1"),
    "standings": lambda slurm: slurm.read_statuses(["n1"]),
    "cordon": lambda slurm: slurm.cordon("n1", "x"),
    "spare": lambda slurm: slurm.run_spare("n1", ["true"], b"", 5),
}


@needs_slurm
@pytest.mark.parametrize("ask", ["standings", pytest.param("jobs", marks=pytest.mark.slow), "cordon"])
def test_a_slurmctld_that_is_away_is_trouble_and_never_an_empty_cluster(nobody: str, ask: str):
    with pytest.raises(AssayError, match="slurmctld does not answer") as trouble:
        ASKED[ask](adapter(slurm_conf=nobody))
    assert trouble.value.where == nobody
    assert "scontrol ping" in trouble.value.fix


@pytest.mark.parametrize("ask", ASKED)
def test_a_machine_without_slurms_programs_is_told_so(ask: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AssayError, match="there is no sinfo here"):
        ASKED[ask](adapter())


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo \"sinfo: unrecognized option '--json'\" >&2; exit 1", "prints no JSON"),
        ("echo '[]'", "is no object"),
        ("echo '{}'", "not understood"),
        ("echo 'idle'", "no JSON, and exit code 0"),
        ('echo \'{"errors": [{"error": "mist"}], "nodes": []}\'', "mist"),
    ],
)
def test_a_sinfo_that_cannot_say_it_is_trouble(script: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "sinfo").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(AssayError, match=told):
        adapter().read_cordon_reason("n1")


def test_a_sinfo_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "sinfo").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("assay.adapters.slurm.client.SLURM_TIMEOUT_S", 0.3)
    began = time.monotonic()
    with pytest.raises(AssayError, match="slurmctld does not answer"):
        adapter().read_cordon_reason("n1")
    assert time.monotonic() - began < 30
