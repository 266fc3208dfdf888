"""Where the list names the real program, a test comes to each place in the code, and the real one gets its words.

A program of a test may stand in the way once, to learn the words of production: then the real one gets words with
the same options. `made_calls.py` runs drawn entries.
"""

from __future__ import annotations

import pytest

from tests.architecture.made_calls import PARTNERS, list_unmade, run_tests
from tests.support.seen_calls import SeenCall

PLACE = "node/load_tools/fio.py:_read_drive: runs fio"
ROW = {"program": "fio", "places": [PLACE]}
REAL = [name for name, row in PARTNERS.items() if row["by"] == "real"]
OURS = ("node/load_tools/tool_call.py:_call", "node/load_tools/fio.py:_read_drive")
WORDS = ("fio", "--filename=/dev/nvme0n1", "--readonly")
FAKE = SeenCall("/dev/shm/pytest-of-root/pytest-1/test_x0/fio", WORDS, OURS)


@pytest.mark.slow(minutes=20)
@pytest.mark.parametrize("name", REAL)
def test_each_place_of_an_entry_starts_the_real_program(name: str) -> None:
    run = run_tests(PARTNERS[name]["tests"])
    assert run.code == 0, run.printed
    if run.is_skipped:
        pytest.skip(f"a test of {name} needs what this machine lacks: {run.printed[-500:]}")
    assert list(list_unmade(PARTNERS[name], run.calls)) == []


def test_a_place_that_no_test_comes_to_is_told() -> None:
    assert list(list_unmade(ROW, [SeenCall("/usr/bin/fio", WORDS, ())])) == [f"{PLACE}: no test came here"]


def test_a_program_of_a_test_is_not_the_real_one() -> None:
    assert list(list_unmade(ROW, [FAKE])) == [
        f"{PLACE}: no real program got these words: fio --filename=/dev/nvme0n1 --readonly"
    ]


def test_the_real_program_with_other_options_does_not_count() -> None:
    real = SeenCall("/usr/bin/fio", ("fio", "--filename=/tmp/drive", "--readwrite"), ())
    assert len(list(list_unmade(ROW, [FAKE, real]))) == 1


@pytest.mark.parametrize("functions", [OURS, ()])
def test_the_real_program_with_these_options_counts(functions: tuple[str, ...]) -> None:
    real = SeenCall("/usr/bin/fio", ("fio", "--filename=/tmp/drive", "--readonly"), functions)
    assert list(list_unmade(ROW, [FAKE, real])) == []


def test_what_a_test_starts_is_seen_with_the_function_of_production() -> None:
    run = run_tests(
        ["tests/node/load_tools/test_real_tools.py::test_what_a_tool_prints_counts_and_its_exit_code_does_not"]
    )
    assert run.code == 0, run.printed
    (call,) = [call for call in run.calls if "node/probe/node_access.py:run_tool" in call.functions]
    assert (call.program.rpartition("/")[2], call.words[1]) == ("sh", "-c")
