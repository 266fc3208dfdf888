"""A run and a comparison as annotations of GitHub."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.tell.report.github import MAX_ANNOTATIONS, escape_annotation

SUITE = "import pytest\n\n\n@pytest.mark.passive\ndef test_heat(gpu):\n    pass\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A fleet of which one module of suites can be read, and one is no Python."""
    folder = tmp_path / "suites" / "production"
    folder.mkdir(parents=True)
    (folder / "test_heat.py").write_text(SUITE)
    (folder / "test_ecc.py").write_text("def test_ecc(:")
    return tmp_path


def test_an_annotation_stands_at_the_function_of_the_check_and_names_the_limit(told, day, root):
    lines = told("github", day[1], root=root)
    assert lines[0] == (
        "::error file=suites/production/test_heat.py,line=5,title=production/test_heat.py%3A%3Atest_heat::"
        "8 outcomes on 4 nodes (n0001..n0004), first h100-a/n0001/gpu0: "
        "gpu_temperature 91 °C, expected at most 85 (specs/nodes/h100.yaml:82)"
    )
    assert lines[1].startswith("::error file=suites/production/test_ecc.py,title=production/test_ecc.py")


def test_what_is_known_or_on_trial_is_a_warning(told, day):
    lines = told("github", day[1])
    assert [line.split()[0] for line in lines[:-1]] == ["::error"] * 2 + ["::warning"] * 2
    assert lines[-1].startswith("14 outcomes on 5 nodes")


def test_a_run_that_has_not_ended_is_an_error(told, keep, judged):
    lines = told("github", keep(judged({"heat n1": "pass"}), ended=""))
    assert lines[0].startswith("::error title=unreliable run::run 20261121T000000.000-abcdef: it has not ended")


def test_a_comparison_has_an_error_for_what_is_worse_and_a_warning_for_what_still_fails(told, keep, judged):
    old = keep(judged({"heat n1": "fail: hot", "fans n1": "pass"}))
    lines = told("github", old, keep(judged({"heat n1": "fail: hot", "fans n1": "fail: 0 rpm"})))
    assert [re.sub("file=[^,]*,", "", line) for line in lines[:-1]] == [
        "::error title=production/test_fans.py%3A%3Atest_fans newly failing::h100-a/n1: 0 rpm",
        "::warning title=production/test_heat.py%3A%3Atest_heat still failing::h100-a/n1: hot",
    ]


def test_more_than_github_shows_are_counted(told, keep, of):
    lines = told("github", keep([of(f"c{letter}", "n1", "fail", letter) for letter in "abcdefghijklmno"]))
    assert sum(line.startswith("::error") for line in lines) == MAX_ANNOTATIONS
    assert lines[-2] == "and 5 errors more, which GitHub would not show"


def test_what_would_end_a_command_is_escaped():
    assert escape_annotation("50 %\r\n::x, y", ":,") == "50 %25%0D%0A%3A%3Ax%2C y"
