"""The plan is one comment on the pull request: written once, edited by the next push, never mistaken for a person's.

GitHub's part is played by a small server (github_api.py).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.declare.starter.github_api import GitHubApi, serve_github
from tests.support.places import ROOT

SCRIPT = ROOT / ".github" / "actions" / "comment" / "comment.py"
MARKER = "<!-- assay plan -->"


@pytest.fixture
def github() -> Iterator[GitHubApi]:
    with serve_github() as server:
        yield server


def comment(github: GitHubApi, folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run the script as the workflow's step does, for pull request 7."""
    (folder / "plan.md").write_text(text)
    (folder / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    github_says = {
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": "us/fleet",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_TOKEN": "a-token",
    }
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPT), str(folder / "plan.md")],
        env={**os.environ, **github_says},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_first_push_comments_and_the_second_edits(github: GitHubApi, tmp_path: Path) -> None:
    first = comment(github, tmp_path, f"{MARKER}\nthree nodes\n")
    assert (first.returncode, first.stdout) == (0, "commented\n"), first.stderr
    second = comment(github, tmp_path, f"{MARKER}\nfour nodes\n")
    assert (second.returncode, second.stdout) == (0, "edited the comment\n")
    assert github.bodies(7) == [f"{MARKER}\nfour nodes\n"]


def test_what_is_right_already_is_left_alone(github: GitHubApi, tmp_path: Path) -> None:
    comment(github, tmp_path, f"{MARKER}\nthree nodes\n")
    github.asked.clear()
    assert comment(github, tmp_path, f"{MARKER}\nthree nodes\n").stdout == "the comment is right already\n"
    assert github.asked == ["GET 200"]


def test_it_is_found_among_hundreds_and_on_this_pull_request_only(github: GitHubApi, tmp_path: Path) -> None:
    github.add(8, f"{MARKER}\nanother pull request's", "Bot")
    for number in range(250):
        github.add(7, f"remark {number}")
    github.add(7, f"{MARKER}\nours", "Bot")
    comment(github, tmp_path, f"{MARKER}\nnews\n")
    assert github.bodies(7)[250:] == [f"{MARKER}\nnews\n"]
    assert github.comments[8][0]["body"] == f"{MARKER}\nanother pull request's"


def test_a_person_who_quotes_the_marker_and_another_robot_keep_their_words(github: GitHubApi, tmp_path: Path) -> None:
    others = [(f"{MARKER}\nlook at this", "User"), (f"a robot that quotes {MARKER}", "Bot")]
    for body, kind in others:
        github.add(7, body, kind)
    comment(github, tmp_path, f"{MARKER}\nthe plan\n")
    assert github.bodies(7) == [*(body for body, _ in others), f"{MARKER}\nthe plan\n"]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_token_that_cannot_write_is_no_failure(github: GitHubApi, tmp_path: Path, status: int) -> None:
    github.refuses = status
    run = comment(github, tmp_path, f"{MARKER}\nfrom a fork\n")
    assert run.returncode == 0
    assert run.stdout.startswith("::notice title=No comment::")
    assert github.bodies(7) == []


def test_a_server_that_stumbles_is_asked_again(github: GitHubApi, tmp_path: Path) -> None:
    github.stumbles = 2
    assert comment(github, tmp_path, f"{MARKER}\nthree nodes\n").stdout == "commented\n"
    assert github.asked == ["GET 502", "GET 502", "GET 200", "POST 201"]


def test_an_answer_that_nobody_expects_fails_and_is_shown(github: GitHubApi, tmp_path: Path) -> None:
    github.refuses = 422
    run = comment(github, tmp_path, f"{MARKER}\nthree nodes\n")
    assert run.returncode == 1
    assert "answered 422" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_plan_that_is_too_long_is_cut_at_a_line_and_says_so(github: GitHubApi, tmp_path: Path) -> None:
    comment(github, tmp_path, MARKER + "\n" + "".join(f"- n{number:05}: ö\n" for number in range(9000)))
    (body,) = github.bodies(7)
    assert len(body) < 65_536
    lines = body.splitlines()
    assert lines[-1] == "… and more: the job's summary has it all."
    assert re.fullmatch(r"- n\d{5}: ö", lines[-3])


def test_a_text_without_a_marker_is_refused(github: GitHubApi, tmp_path: Path) -> None:
    run = comment(github, tmp_path, "three nodes\n")
    assert run.returncode == 1
    assert "the first line must be an HTML comment" in run.stderr
    assert github.asked == []


def test_a_server_that_cannot_be_reached_is_told_in_a_sentence(github: GitHubApi, tmp_path: Path) -> None:
    github.shutdown()
    github.server_close()
    run = comment(github, tmp_path, f"{MARKER}\nthree nodes\n")
    assert (run.returncode, run.stderr) == (1, f"{github.url} does not answer: [Errno 111] Connection refused\n")
