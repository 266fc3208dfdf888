"""GitHub's API in small: it keeps the comments of pull requests, a hundred to a page, and knows what merged them."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

REPOSITORY = r"/repos/[\w-]+/[\w-]+"


class GitHubApi(ThreadingHTTPServer):
    """The comments of one repository's pull requests, and the merges by commit.

    `refuses` answers every write with that status. `tokens` holds the permissions of each token; where it is None, each
    token may do everything.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.comments: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.merges: dict[str, int] = {}
        self.tokens: dict[str, dict[str, str]] | None = None
        self.asked: list[str] = []
        self.refuses = 0
        self.stumbles = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, number: int, body: str, kind: str = "User") -> None:
        """Let someone comment."""
        said = sum(len(some) for some in self.comments.values())
        self.comments[number].append({"id": 100 + said, "user": {"type": kind}, "body": body})

    def bodies(self, number: int) -> list[str]:
        """Return the texts of a pull request's comments."""
        return [one["body"] for one in self.comments[number]]


@contextmanager
def serve_github() -> Iterator[GitHubApi]:
    """Serve the API on a loopback port."""
    server = GitHubApi()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class _Answers(BaseHTTPRequestHandler):
    server: GitHubApi

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if self._refused("pull-requests", "read"):
            return None
        if merged := re.fullmatch(rf"{REPOSITORY}/commits/(\w+)/pulls", path):
            number = self.server.merges.get(merged[1])
            pulls = [{"number": number, "merge_commit_sha": merged[1]}] if number else []
            return self._answer(200, pulls)
        number = int(re.fullmatch(rf"{REPOSITORY}/issues/(\d+)/comments", path)[1])
        query = parse_qs(urlsplit(self.path).query)
        size, page = int(query["per_page"][0]), int(query["page"][0])
        return self._answer(200, self.server.comments[number][size * (page - 1) : size * page])

    def do_POST(self) -> None:
        if not self._refused("pull-requests", "write"):
            number = int(re.fullmatch(rf"{REPOSITORY}/issues/(\d+)/comments", self.path)[1])
            self.server.add(number, self._body(), "Bot")
            self._answer(201, self.server.comments[number][-1])

    def do_PATCH(self) -> None:
        if not self._refused("pull-requests", "write"):
            wanted = int(re.fullmatch(rf"{REPOSITORY}/issues/comments/(\d+)", self.path)[1])
            (one,) = (one for some in self.server.comments.values() for one in some if one["id"] == wanted)
            one["body"] = self._body()
            self._answer(200, one)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""

    def _body(self) -> str:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def _refused(self, part: str, right: str) -> bool:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        may = "write" if self.server.tokens is None else self.server.tokens.get(token, {}).get(part, "")
        refusal = self.server.refuses if right == "write" else 0
        if may != "write" and may != right:
            refusal = 403
        if refusal:
            self._answer(refusal, {"message": "Resource not accessible by integration"})
        return bool(refusal)

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
