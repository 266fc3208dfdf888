"""Real processes: each pair is fresh, ends at its deadline with all that it started, and leaves one whole line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.errors import AssayError
from assay.model.facts import format_compact, to_json
from assay.validate.collectives import cpu_workload
from assay.validate.collectives.command import CommandTemplate, PairTask, check_words, read_output
from assay.validate.collectives.fabric_map import FabricMap
from assay.validate.collectives.judging import SpeedRule
from assay.validate.collectives.report import build_staged_report
from assay.validate.collectives.result_file import ResultFile, SearchHeader
from assay.validate.collectives.results import PairResult, parse_result
from assay.validate.collectives.run import PairRunner, SearchRunners, run_search
from assay.validate.collectives.search import SearchResults, StagedSearch
from tests.support.places import ROOT
from tests.support.slurm_cluster import until

RECORDINGS = ROOT / "tests/data/nccl-tests"
WORKLOAD = (sys.executable, "-I", "-S", cpu_workload.__file__, "{a}", "{b}")
TASK = PairTask("M1", ("a", "b"))


def planted(**faults: str) -> tuple[str, ...]:
    return (*WORKLOAD, *(f"--plant={name}={fault}" for name, fault in faults.items()))


def run_all(runner: PairRunner, *tasks: PairTask) -> dict[tuple[str, str], PairResult]:
    found: list[PairResult] = []
    runner.run(tasks, found.append)
    return {result.pair: result for result in found}


def test_each_fault_ends_as_it_must() -> None:
    runner = PairRunner(CommandTemplate(planted(d="dead", h="hung", s="slow", w="wrong")), 4, 5)
    pairs = [("a", "b"), ("c", "d"), ("g", "h"), ("r", "s"), ("v", "w")]
    found = run_all(runner, *(PairTask("M1", pair) for pair in pairs))
    good, dead, hung, slow, wrong = (found[pair] for pair in pairs)
    assert (good.ended, good.wrong) == ("ok", 0)
    assert (dead.ended, dead.seconds) == ("died", None)
    assert (hung.ended, hung.seconds) == ("deadline", None)
    assert slow.seconds > 1.2 * good.seconds
    assert (wrong.ended, wrong.wrong) == ("ok", 2), "one bit, seen by both members"


@pytest.mark.slow
def test_a_search_with_real_processes_names_exactly_the_planted(tmp_path: Path) -> None:
    faults = {"n02": "slow", "n05": "hung", "n07": "wrong", "n10": "dead"}
    fabric = FabricMap.without_design([f"n{at:02}" for at in range(1, 13)])
    search = StagedSearch(fabric, list(fabric.nodes), 4)
    runners = SearchRunners(PairRunner(CommandTemplate(planted(**faults)), 3, 6))
    file = ResultFile(tmp_path / "results.jsonl")
    header, _ = file.continue_or_start(SearchHeader(tuple(fabric.nodes), 4, "", (), SpeedRule()))
    results = run_search(search, (), runners, file, SearchResults([]), lambda *_: None)
    report = build_staged_report(search, results)
    symptoms = {one.part.name: one.symptom for one in report.named}
    assert symptoms == {"n02": "slow", "n05": "hung", "n07": "wrong", "n10": "died"}
    assert report.undecided == ()
    assert report.rounds[-1] == "C3", "with so many faulty, partners are nodes whose bad pairs others explain"
    assert file.read() == (header, results)


def test_the_deadline_ends_all_that_a_pair_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid}; wait"
    found = run_all(PairRunner(CommandTemplate(("sh", "-c", script, "{a}", "{b}")), 1, 1), TASK)
    assert found["a", "b"].ended == "deadline"
    status = Path("/proc", pid.read_text().strip(), "stat")
    until(lambda: not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_an_interrupt_ends_what_runs_and_the_next_run_continues(tmp_path: Path) -> None:
    fabric = FabricMap.without_design([f"n{at}" for at in range(6)])
    search = StagedSearch(fabric, list(fabric.nodes), 1)
    file = ResultFile(tmp_path / "results.jsonl")
    header = SearchHeader(tuple(fabric.nodes), 1, "", (), SpeedRule())
    file.continue_or_start(header)
    runners = SearchRunners(PairRunner(CommandTemplate(WORKLOAD), 30, 1))
    shown: list[tuple[str, int, int]] = []

    def interrupt(*progress: object) -> None:
        shown.append(progress)
        if len(shown) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_search(search, (), runners, file, SearchResults([]), interrupt)
    with file.path.open("a") as stream:
        stream.write('{"round": "M2", "pair": ["n')  # the process was killed while it wrote
    known, results = ResultFile(file.path).continue_or_start(header)
    assert known == header
    assert [result.round for result in results.pairs] == ["M1", "M1", "M1"]
    every = run_search(search, (), runners, file, results, lambda *_: None).pairs
    assert every[:3] == results.pairs
    assert len({result.key for result in every}) == len(every) == 9
    assert ResultFile(file.path).read()[1].pairs == every


def test_a_report_of_nccl_tests_is_read_and_its_environment_dropped(tmp_path: Path) -> None:
    report = tmp_path / "out.json"
    report.with_name("out.json.0").write_text((RECORDINGS / "report.json").read_text())
    result = read_output(TASK, 1, "# Writing JSON output\n", report)
    assert (result.ended, result.gb_s, result.wrong) == ("ok", 468.4305, 1_000_000)
    assert "CANARY" not in format_compact(result)


def test_a_table_is_read_where_there_is_no_report(tmp_path: Path) -> None:
    result = read_output(TASK, 0, (RECORDINGS / "badly-wrong.txt").read_text(), tmp_path / "none.json")
    assert (result.ended, result.gb_s, result.wrong) == ("ok", 469.66, 25_000_000)


@pytest.mark.parametrize(
    ("code", "output", "ended"),
    [
        (1, "n1: Test NCCL failure common.cu:1015 'unhandled system error'", "died"),
        (0, "nothing that anybody knows", "unreadable"),
        (0, '{"ended": "ok", "seconds": -1}', "unreadable"),
        (0, '{"ended": "preempted"}', "preempted"),
    ],
)
def test_output_without_a_result_is_never_good(code: int, output: str, ended: str, tmp_path: Path) -> None:
    assert read_output(TASK, code, output, tmp_path / "none.json").ended == ended


def test_a_command_gets_its_words_and_no_shell() -> None:
    template = CommandTemplate(
        ("run", "--nodes={a},{b}", "--rail", "{rail}", "-J", "{out}", "-t", "{deadline}", "{round}")
    )
    words = template.fill(PairTask("M2", ("x; reboot", "y"), 3), Path("/s/1.json"), 90)
    assert words == ["run", "--nodes=x; reboot,y", "--rail", "3", "-J", "/s/1.json", "-t", "90", "M2"]
    assert template.has_rails


@pytest.mark.parametrize("text", ["srun -w {a}", "srun -w {a},{b} {c}", ""])
def test_a_command_that_cannot_work_is_refused(text: str) -> None:
    with pytest.raises(AssayError, match=r"command"):
        check_words("pair", tuple(text.split()), "here")


def test_a_program_that_is_not_there_is_an_error_of_ours() -> None:
    with pytest.raises(AssayError, match=r"cannot be started"):
        run_all(PairRunner(CommandTemplate(("/none/srun", "{a}", "{b}")), 5, 1), TASK)


def test_a_file_of_something_else_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"round": "M1", "pair": ["a", "b"], "ended": "ok"}\n{"pair": ["a"]}\n')
    with pytest.raises(AssayError, match=r"results.jsonl:2: .*two node names"):
        ResultFile(path).read()
    path.write_text('{"collectives": 99}\n')
    with pytest.raises(AssayError, match=r"results.jsonl:1: .*99"):
        ResultFile(path).read()


NAMES = st.text(min_size=1, max_size=8)
POSITIVE = st.none() | st.floats(min_value=1e-6, max_value=1e9)


@given(
    st.builds(
        PairResult, NAMES, st.lists(NAMES, min_size=2, max_size=2, unique=True).map(tuple), NAMES,
        st.none() | st.integers(0, 9), POSITIVE, POSITIVE, st.none() | st.integers(0, 10**12), st.text(),
    )
)  # fmt: skip
def test_a_result_survives_its_line(result: PairResult) -> None:
    assert parse_result(to_json(result)) == result
