"""The plan is one comment on the pull request: written once, edited by the next push, never mistaken for a person's.

GitHub's part is played by a small server that keeps comments as its API does, a hundred to a page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".github" / "actions" / "comment" / "comment.py"
MARKER = "<!-- assay plan -->"


class GitHub(ThreadingHTTPServer):
    """The comments of one repository's pull requests. `refuses` answers every write with that status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.comments: dict[int, list[dict[str, Any]]] = {7: [], 8: []}
        self.asked: list[str] = []
        self.refuses = 0
        self.stumbles = 0

    def add(self, number: int, body: str, kind: str = "User") -> None:
        """Let someone comment."""
        said = sum(len(some) for some in self.comments.values())
        self.comments[number].append({"id": 100 + said, "user": {"type": kind}, "body": body})

    @property
    def bodies(self) -> list[str]:
        return [one["body"] for one in self.comments[7]]


class _Answers(BaseHTTPRequestHandler):
    server: GitHub

    def do_GET(self) -> None:
        number = int(re.fullmatch(r"/repos/us/fleet/issues/(\d+)/comments", urlsplit(self.path).path)[1])
        query = parse_qs(urlsplit(self.path).query)
        size, page = int(query["per_page"][0]), int(query["page"][0])
        self._answer(200, self.server.comments[number][size * (page - 1) : size * page])

    def do_POST(self) -> None:
        if not self._refused():
            number = int(re.fullmatch(r"/repos/us/fleet/issues/(\d+)/comments", self.path)[1])
            self.server.add(number, self._body(), "Bot")
            self._answer(201, self.server.comments[number][-1])

    def do_PATCH(self) -> None:
        if not self._refused():
            wanted = int(re.fullmatch(r"/repos/us/fleet/issues/comments/(\d+)", self.path)[1])
            (one,) = (one for some in self.server.comments.values() for one in some if one["id"] == wanted)
            one["body"] = self._body()
            self._answer(200, one)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""

    def _body(self) -> str:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def _refused(self) -> bool:
        if self.server.refuses:
            self._answer(self.server.refuses, {"message": "Resource not accessible by integration"})
        return bool(self.server.refuses)

    def _answer(self, status: int, document: object) -> None:
        if self.server.stumbles:
            self.server.stumbles -= 1
            status, document = 502, {"message": "Server Error"}
        self.server.asked.append(f"{self.command} {status}")
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def comment(github: GitHub, folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run the script as the workflow's step does, for pull request 7."""
    (folder / "plan.md").write_text(text)
    (folder / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    github_says = {
        "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}",
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


def test_the_first_push_comments_and_the_second_edits(github: GitHub, tmp_path: Path) -> None:
    first = comment(github, tmp_path, f"{MARKER}\nthree nodes\n")
    assert (first.returncode, first.stdout) == (0, "commented\n"), first.stderr
    second = comment(github, tmp_path, f"{MARKER}\nfour nodes\n")
    assert (second.returncode, second.stdout) == (0, "edited the comment\n")
    assert github.bodies == [f"{MARKER}\nfour nodes\n"]


def test_what_is_right_already_is_left_alone(github: GitHub, tmp_path: Path) -> None:
    comment(github, tmp_path, f"{MARKER}\nthree nodes\n")
    github.asked.clear()
    assert comment(github, tmp_path, f"{MARKER}\nthree nodes\n").stdout == "the comment is right already\n"
    assert github.asked == ["GET 200"]


def test_it_is_found_among_hundreds_and_on_this_pull_request_only(github: GitHub, tmp_path: Path) -> None:
    github.add(8, f"{MARKER}\nanother pull request's", "Bot")
    for number in range(250):
        github.add(7, f"remark {number}")
    github.add(7, f"{MARKER}\nours", "Bot")
    comment(github, tmp_path, f"{MARKER}\nnews\n")
    assert github.bodies[250:] == [f"{MARKER}\nnews\n"]
    assert github.comments[8][0]["body"] == f"{MARKER}\nanother pull request's"


def test_a_person_who_quotes_the_marker_and_another_robot_keep_their_words(github: GitHub, tmp_path: Path) -> None:
    others = [(f"{MARKER}\nlook at this", "User"), (f"a robot that quotes {MARKER}", "Bot")]
    for body, kind in others:
        github.add(7, body, kind)
    comment(github, tmp_path, f"{MARKER}\nthe plan\n")
    assert github.bodies == [*(body for body, _ in others), f"{MARKER}\nthe plan\n"]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_token_that_cannot_write_is_no_failure(github: GitHub, tmp_path: Path, status: int) -> None:
    github.refuses = status
    run = comment(github, tmp_path, f"{MARKER}\nfrom a fork\n")
    assert run.returncode == 0
    assert run.stdout.startswith("::notice title=No comment::")
    assert github.bodies == []


def test_a_server_that_stumbles_is_asked_again(github: GitHub, tmp_path: Path) -> None:
    github.stumbles = 2
    assert comment(github, tmp_path, f"{MARKER}\nthree nodes\n").stdout == "commented\n"
    assert github.asked == ["GET 502", "GET 502", "GET 200", "POST 201"]


def test_an_answer_that_nobody_expects_fails_and_is_shown(github: GitHub, tmp_path: Path) -> None:
    github.refuses = 422
    run = comment(github, tmp_path, f"{MARKER}\nthree nodes\n")
    assert run.returncode == 1
    assert "answered 422" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_plan_that_is_too_long_is_cut_at_a_line_and_says_so(github: GitHub, tmp_path: Path) -> None:
    comment(github, tmp_path, MARKER + "\n" + "".join(f"- n{number:05}: ö\n" for number in range(9000)))
    (body,) = github.bodies
    assert len(body) < 65_536
    lines = body.splitlines()
    assert lines[-1] == "… and more: the job's summary has it all."
    assert re.fullmatch(r"- n\d{5}: ö", lines[-3])


def test_a_text_without_a_marker_is_refused(github: GitHub, tmp_path: Path) -> None:
    run = comment(github, tmp_path, "three nodes\n")
    assert run.returncode == 1
    assert "the first line must be an HTML comment" in run.stderr
    assert github.asked == []
