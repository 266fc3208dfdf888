"""xdist spreads real checks over workers: a node's stay together, and each outcome is delivered once."""

from __future__ import annotations

from collections import defaultdict

import pytest

from assay.ledger.runs.writer import OutcomeWriter
from assay.model.outcome import Outcome, SuiteRun
from assay.validate.judging.session_outcome_file import merge_worker_files

pytest_plugins = ["pytester"]

SUITE = """
import os
from pathlib import Path

WHO = Path(__file__).parents[1] / "who"


def note(subject):
    with WHO.open("a") as file:
        file.write(f"{os.environ.get('PYTEST_XDIST_WORKER', 'alone')} {subject}\\n")


def test_gpu(gpu, subject, tmp_path):
    note(subject)
    assert gpu.pcie.width == 16


def test_node(node, subject, tmp_path):
    note(subject)
    assert node.host.cpu_threads < 0, "too many threads"


def test_slim(node, subject):
    note(subject)
    assert node.host.cpu_threads
"""
KILLED_AT_THE_END = """
import os

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config):
    if hasattr(config, "workerinput"):
        os._exit(0)
"""
"""xdist kills a worker that is not gone ten seconds after its last test, such as while a plugin imports much."""
NODES = [f"n{number:04}" for number in range(1, 5)]
EVERY = len(NODES) * 10


@pytest.fixture
def fleet(fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected(*NODES)
    return fleet_copy


def spread(fleet, *more: str):
    return fleet.again("--assay-node", ",".join(NODES), "-p", "xdist", "-n", "2", "--dist", "loadgroup", *more)


def judged(fleet) -> dict[str, list[str]]:
    """Return the subjects that each worker judged."""
    found = defaultdict(list)
    for line in (fleet.root / "who").read_text().splitlines():
        worker, subject = line.split()
        found[worker].append(subject)
    return found


def test_a_node_stays_with_one_worker_and_each_outcome_is_delivered_once(fleet):
    (fleet.root / "suites/conftest.py").write_text(KILLED_AT_THE_END)
    assert spread(fleet).ret == pytest.ExitCode.TESTS_FAILED
    kept = fleet.kept()
    assert len(kept) == len({(one.check, one.subject) for one in kept}) == EVERY
    assert {one.verdict for one in kept if one.check.endswith("test_node")} == {"fail"}
    assert [one.reason for one in kept if "twice" in one.reason] == []
    workers = judged(fleet)
    assert len(workers) == 2
    nodes = [{subject.split("/")[1] for subject in subjects} for subjects in workers.values()]
    assert not nodes[0] & nodes[1]
    assert nodes[0] | nodes[1] == set(NODES)
    assert sorted(path.name for path in fleet.root.glob("own.sqlite*")) == ["own.sqlite"]


@pytest.mark.slow
def test_workers_without_a_way_to_distribute_judge_everything_once_too(fleet):
    done = fleet.again("--assay-node", ",".join(NODES), "-p", "xdist", "-n", "4")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    kept = fleet.kept()
    assert len(kept) == len({(one.check, one.subject) for one in kept}) == EVERY
    assert [one.reason for one in kept if "twice" in one.reason] == []


@pytest.mark.slow
def test_a_second_session_judges_nothing_again_and_ends_as_the_first(fleet):
    spread(fleet)
    (fleet.root / "who").unlink()
    assert spread(fleet).ret == pytest.ExitCode.TESTS_FAILED
    assert not (fleet.root / "who").exists()
    assert len(fleet.kept()) == EVERY


def test_what_killed_workers_have_written_counts(fleet):
    """A worker's file is left where the session was killed; the next takes it in first."""
    run = SuiteRun("r", "2026-11-21T12:00:00+00:00")
    for worker, node in (("gw0", "n0001"), ("gw1", "n0002")):
        writer = OutcomeWriter(fleet.written.with_name(f"own.sqlite.{worker}"), run)
        writer(Outcome("suites/test_own.py::test_slim", f"h100-a/{node}", node, "pass"))
        writer.flush()  # and never closed
    spread(fleet)
    assert len(fleet.kept()) == EVERY
    again = [subject for subjects in judged(fleet).values() for subject in subjects]
    assert len(again) == EVERY - 2


def test_there_need_not_be_a_worker(tmp_path):
    merge_worker_files(tmp_path / "own.sqlite")
    assert list(tmp_path.iterdir()) == []
