"""After a merge, the commit has a note of the plan that its pull request's comment shows; without one, it has none.

GitHub's part is played by a small server. The repository is a real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from assay.act.rollouts.commit_adoption import find_reviewed_plan
from assay.decide.plan.output_formats import COMMENT_MARKER
from tests.support.places import ROOT

SCRIPT = ROOT / ".github" / "actions" / "comment" / "reviewed_plan.py"
DIGEST = f"sha256:{'ab' * 32}"


class GitHub(ThreadingHTTPServer):
    """The answers by path. A path without one is refused."""

    answers: dict[str, Any]


class _Answers(BaseHTTPRequestHandler):
    server: GitHub

    def do_GET(self) -> None:
        answer = self.server.answers.get(self.path)
        text = json.dumps(answer if answer is not None else {"message": "no"}).encode()
        self.send_response(200 if answer is not None else 403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub(("127.0.0.1", 0), _Answers)
    server.answers = {}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def merged(tmp_path: Path) -> tuple[Path, str]:
    def git(*words: str) -> str:
        person = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *person, *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "a merge")
    return tmp_path, git("rev-parse", "HEAD").strip()


def note(github: GitHub, root: Path, commit: str) -> subprocess.CompletedProcess[str]:
    github_says = {
        "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}",
        "GITHUB_REPOSITORY": "us/fleet",
        "GITHUB_SHA": commit,
        "GITHUB_TOKEN": "a-token",
    }
    words, env = [sys.executable, str(SCRIPT)], {**os.environ, **github_says, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(words, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=60)


def pull(github: GitHub, commit: str, *bodies: tuple[str, str], merge: str = "") -> None:
    comments = [{"id": at, "user": {"type": kind}, "body": body} for at, (kind, body) in enumerate(bodies)]
    github.answers[f"/repos/us/fleet/commits/{commit}/pulls"] = [{"number": 7, "merge_commit_sha": merge or commit}]
    github.answers["/repos/us/fleet/issues/7/comments?per_page=100&page=1"] = comments
    github.answers["/repos/us/fleet/issues/7/comments?per_page=100&page=2"] = []


def test_the_plan_of_the_comment_becomes_the_note_that_assay_reads(github, merged) -> None:
    person = ("User", f"{COMMENT_MARKER}\nAssay-Plan: sha256:{'cd' * 32}")
    pull(
        github,
        merged[1],
        person,
        ("Bot", f"{COMMENT_MARKER}\r\n### plan\r\n\r\nAssay-Plan: {DIGEST} at 4711\r\n\r\n- more"),
    )
    for _ in range(2):
        run = note(github, *merged)
        assert (run.returncode, run.stdout) == (0, f"reviewed in pull request 7: Assay-Plan: {DIGEST} at 4711\n")
    reviewed = find_reviewed_plan(*merged)
    assert (reviewed.digest, reviewed.position) == (DIGEST, 4711)


@pytest.mark.parametrize("case", ["no plan", "another merge", "no right"])
def test_without_a_plan_there_is_no_note(github, merged, case) -> None:
    if case != "no right":
        plan = "nothing changes" if case == "no plan" else f"Assay-Plan: {DIGEST}"
        other = "0" * 40 if case == "another merge" else ""
        pull(github, merged[1], ("Bot", f"{COMMENT_MARKER}\n{plan}"), merge=other)
    run = note(github, *merged)
    assert (run.returncode, find_reviewed_plan(*merged)) == (0, None), run.stderr
    assert ("cannot read pull requests" in run.stdout) is (case == "no right")
