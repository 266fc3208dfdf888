"""A run as a person at a terminal reads it."""

from __future__ import annotations

import pytest

from assay.validate.results.run_summary import normalise_reason

HOT = "production/test_heat.py::test_heat"


def test_a_run_is_its_name_its_counts_and_a_line_for_each_that_did_not_pass(told, day):
    lines = told("text", day[1])
    assert lines[0] == "run 20261121T010000.000-abcdef, 2026-11-21 01:00 UTC, specs c0ffee000000, by ines"
    assert lines[1] == (
        "14 outcomes on 5 nodes: 3 passed, 10 failed, 1 could not be judged (2 of them known or on trial)"
    )
    assert lines[3] == (
        f"fail  h100-a/n0001/gpu0  {HOT}  gpu_temperature 91 °C, expected at most 85 (specs/nodes/h100.yaml:82)"
    )
    assert lines[-1] == "error h100-a/n0002       production/test_ecc.py::test_ecc  n0002.bmc: failed: no answer"


def test_what_is_known_or_on_trial_is_told_last_of_the_failures_and_as_that(told, day):
    words = [line.split()[0] for line in told("text", day[1])[3:]]
    assert words == ["fail"] * 8 + ["known", "trial", "error"]
    assert told("text", day[1])[11].endswith("0 rpm  [https://issues.example/7]")


def test_what_a_node_said_never_reaches_the_terminal_as_a_command(told, day):
    assert not any("\x1b" in line for line in told("text", *day) + told("text", day[1]))
    assert told("text", day[1])[12].endswith(r"x <y> & @z \x1b[1m")


def test_many_that_fail_alike_are_one_line_the_widest_spread_first(told, keep, of):
    hot = [
        of("heat", f"n{number:04}/gpu{gpu}", "fail", f"gpu{gpu} of n{number:04}: {80 + number} °C")
        for number in range(1, 17)
        for gpu in range(8)
    ]
    lines = told("text", keep([*hot, of("power", "n0099", "fail", "psu1 is absent")]))
    assert lines[3:] == [
        f"fail  16 nodes (n0001..n0016) {HOT}, 128 outcomes  gpu0 of n0001: 81 °C (h100-a/n0001/gpu0)",
        "fail  h100-a/n0099       production/test_power.py::test_power  psu1 is absent",
    ]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("guid 0xa088c203009a0306, expected 0xa088c203009a0a06", "guid 0xa088c203009a0c06, expected 0xb1", True),
        ("serial A520X44, expected 77", "serial 9B, expected A1", True),
        ("rate 25.5 GB/s, at least 390,000", "rate 3 GB/s, at least 1", True),
        ("gpu0 of n1 is gone", "gpu7 of n1 is gone", True),
        ("n1.bmc: failed: no answer", "n1.probe: failed: no answer", False),
        ("fan is 0 rpm", "psu is 0 W", False),
    ],
)
def test_reasons_are_alike_but_for_what_has_a_digit_in_it(one, other, alike):
    assert (normalise_reason(one, "n1") == normalise_reason(other, "n1")) == alike


def test_one_cause_of_many_checks_is_one_line(told, keep, of):
    silent = [of(check, node, "error", f"no evidence of {node}") for check in ("a", "b") for node in ("n1", "n2")]
    gone = [of(check, "n3", "error", f"the evidence {sign}{'1' * 63} of n3 is gone") for check, sign in ("ca", "db")]
    assert told("text", keep([*silent, *gone]))[3:] == [
        "error 2 nodes (n1, n2)   2 checks, 4 outcomes  no evidence of n1 (h100-a/n1)",
        f"error n3                 2 checks, 2 outcomes  the evidence a{'1' * 63} of n3 is gone",
    ]


def test_a_run_that_has_not_ended_says_so(told, keep, judged):
    lines = told("text", keep(judged({"heat n1": "pass"}), ended=""))
    assert lines[1].startswith("unreliable: it has not ended")
    assert "assay validate --resume 20261121T000000.000-abcdef" in lines[1]


def test_a_comparison_tells_what_is_worse_first(told, day):
    lines = told("text", *day)
    assert lines[1] == "against 20261121T000000.000-abcdef, 2026-11-21 00:00 UTC, specs c0ffee000000, by ines"
    assert lines[2] == "12 outcomes in both: 10 newly failing, 1 no longer known, 1 fixed"
    titles = [line for line in lines[3:] if line and not line.startswith(" ")]
    assert titles == [
        "newly failing: 10 outcomes, 2 of them known or on trial",
        "no longer known: 1 outcome",
        "fixed: 1 outcome",
        "only in one of the runs",
    ]
    assert (
        f"  fail  4 nodes (n0001..n0004) {HOT}, 8 outcomes  "
        "gpu_temperature 91 °C, expected at most 85 (specs/nodes/h100.yaml:82) (h100-a/n0001/gpu0)"
    ) in lines
    assert "  pass  h100-a/n0001       production/test_power.py::test_power  failed before: psu1 is absent" in lines


def test_two_runs_alike_are_three_lines(told, keep, judged):
    lines = told("text", *(keep(judged({"heat n1": "pass"})) for _ in range(2)))
    assert lines[2:] == ["1 outcome in both: nothing changed"]


def test_what_only_one_run_was_asked_for_is_said_once(told, keep, judged):
    whole = keep(judged({f"heat n000{number}": "pass" for number in range(1, 10)}))
    lines = told("text", whole, keep(judged({"heat n0001": "pass"})))
    assert lines[2].endswith("; 8 only in the older run, which the other run was not asked to judge")
    assert lines[-1] == "  8 nodes only in the older run: n0002..n0009"
