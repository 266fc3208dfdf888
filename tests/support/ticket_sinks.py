"""Stand-ins for GitHub's issues, Jira and a webhook: real HTTP servers that can be told to misbehave.

GitHub's and Jira's take the requests of `service_requests.yaml`, written from their documentation, and refuse others.
"""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import trustme
import yaml
from jsonschema import Draft202012Validator

SERVICES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("service_requests.yaml").read_text())


def find_fault(service: str, request: Request, path: str) -> tuple[int, str] | None:
    """Return the status and the reason with which a service refuses a request, None for one that it takes."""
    fitting = [one for one in SERVICES[service]["requests"] if re.fullmatch(one["path"], path)]
    if not fitting:
        return 404, "Not Found"
    taken = next((one for one in fitting if one["method"] == request.method), None)
    if taken is None:
        return 405, f"{request.method} is not allowed"
    parts = {"headers": request.headers, "query": request.query, "body": request.body}
    forms = {
        "headers": SERVICES[service]["headers"],
        **{name: taken[name] for name in ("query", "body") if name in taken},
    }
    for name, form in forms.items():
        for error in Draft202012Validator(form).iter_errors(parts[name]):
            return 422 if service == "github" else 400, f"{name}: {error.message[:200]}"
    return None


@dataclass
class Trouble:
    """What goes wrong with the next requests of a method: a status and headers, a delay, a cut line.

    `after`: whether the request has its effect first, so that only the answer is lost.
    """

    method: str
    times: int = 1
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0
    cut: bool = False
    drip: bytes = b""
    after: bool = False
    then: Callable[[], None] = lambda: None


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    raw: bytes


class Service:
    """A web service: `answer` is what it does; `requests` is what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.troubles: list[Trouble] = []
        self.url = ""

    def answer(self, request: Request) -> tuple[int, Any]:
        raise NotImplementedError

    def asked(self, method: str) -> list[Request]:
        return [one for one in self.requests if one.method == method]

    @contextmanager
    def up(self, authority: trustme.CA | None = None) -> Iterator[Any]:
        """Serve, over TLS with a certificate of the `authority` if there is one."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_port}"
        if authority:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("127.0.0.1").configure_cert(context)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            self.url = self.url.replace("http:", "https:")
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()

    def trouble_for(self, request: Request) -> Trouble | None:
        for one in self.troubles:
            if one.method == request.method and one.times > 0:
                one.times -= 1
                return one
        return None


def _drip(file: Any, start: bytes) -> None:
    """Begin an answer, and then send a byte now and then for a long time."""
    with contextlib.suppress(OSError):
        file.write(start)
        for _ in range(200):
            file.write(b"x")
            time.sleep(0.05)


def _handler(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            at = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(at.query).items()}
            request = Request(self.command, at.path, query, dict(self.headers), json.loads(raw or b"null"), raw)
            service.requests.append(request)
            trouble = service.trouble_for(request)
            status, data = service.answer(request) if trouble is None or trouble.after else (trouble.status, None)
            headers: dict[str, str] = {}
            if trouble:
                trouble.then()
                time.sleep(trouble.delay_s)
                if trouble.drip:
                    _drip(self.wfile, trouble.drip)
                if trouble.cut or trouble.drip:
                    self.close_connection = True
                    return
                status, headers = trouble.status or status, trouble.headers
            content = data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = serve  # noqa: N815 — http.server's names

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class GitHub(Service):
    """The part of GitHub's issues that we use."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self.token, self.issues = token, list[dict[str, Any]]()
        self.comments: dict[int, list[str]] = {}

    def answer(self, request: Request) -> tuple[int, Any]:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return 401, {"message": f"Bad credentials {request.headers.get('Authorization')}"}
        if fault := find_fault("github", request, request.path):
            return fault[0], {"message": fault[1]}
        if request.path.endswith("/comments"):
            return self._answer_comments(request)
        number = request.path.rpartition("/")[2]
        if request.method == "POST":
            made = {"number": len(self.issues) + 1, "state": "open", **request.body}
            made["html_url"] = f"https://github.example/acme/fabric/issues/{made['number']}"
            self.issues.append(made)
            return 201, made
        if request.method == "PATCH":
            found = [one for one in self.issues if str(one["number"]) == number and not one.get("deleted")]
            if not found:
                return 404, {"message": "Not Found"}
            found[0].update(request.body)
            return 200, found[0]
        size, page = int(request.query["per_page"]), int(request.query["page"])
        held = [one for one in reversed(self.issues) if not one.get("deleted")]
        ours = [one for one in held if request.query["labels"] in one["labels"]]
        return 200, ours[(page - 1) * size : page * size]

    def _answer_comments(self, request: Request) -> tuple[int, Any]:
        number = int(request.path.split("/")[-2])
        if not any(one["number"] == number and not one.get("deleted") for one in self.issues):
            return 404, {"message": "Not Found"}
        told = self.comments.setdefault(number, [])
        if request.method == "POST":
            told.append(request.body["body"])
            return 201, {"id": len(told), "body": told[-1]}
        size, page = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
        return 200, [{"body": body} for body in told[(page - 1) * size : page * size]]


STATES = {"To Do": "new", "In Progress": "indeterminate", "Done": "done"}


class Jira(Service):
    """The part of Jira that we use."""

    def __init__(self, authorization: str, version: int = 2) -> None:
        super().__init__()
        self.authorization, self.root = authorization, f"/rest/api/{version}"
        self.issues: dict[str, dict[str, Any]] = {}

    def answer(self, request: Request) -> tuple[int, Any]:
        if request.headers.get("Authorization") != self.authorization:
            return 401, {"errorMessages": ["You are not authenticated."]}
        path = request.path.removeprefix(self.root)
        if fault := find_fault(f"jira-{self.root[-1]}", request, path):
            return fault[0], {"errorMessages": [fault[1]]}
        if path.startswith("/search"):
            label = re.search(r'labels = "([^"]*)"', request.query["jql"])[1]
            found = [key for key, one in self.issues.items() if label in one["fields"]["labels"]]
            return 200, {"issues": [{"key": key} for key in found]}
        if path == "/issue":
            key = f"DC-{len(self.issues) + 1}"
            self.issues[key] = {"fields": request.body["fields"], "status": "To Do", "comments": []}
            return 201, {"id": "1", "key": key}
        _, _, key, *rest = path.split("/")
        return self._issue(request, self.issues.get(key), rest)

    def _issue(self, request: Request, issue: Any, rest: list[str]) -> tuple[int, Any]:
        if issue is None:
            return 404, {"errorMessages": ["Issue does not exist"]}
        match request.method, rest:
            case "PUT", []:
                issue["fields"].update(request.body["fields"])
                return 204, None
            case "GET", []:
                return 200, {"fields": {"status": _status(issue["status"])}}
            case "GET", ["transitions"]:
                return 200, {"transitions": [{"id": name, "name": name, "to": _status(name)} for name in STATES]}
            case "POST", ["transitions"]:
                if request.body["transition"]["id"] not in STATES:
                    return 400, {"errorMessages": ["Transition id is not valid for this issue."]}
                issue["status"] = request.body["transition"]["id"]
                return 204, None
            case "GET", ["comment"]:
                return 200, {"comments": [{"body": one} for one in issue["comments"]]}
        issue["comments"].append(request.body["body"])
        return 201, {"id": "1"}


def _status(name: str) -> dict[str, Any]:
    return {"name": name, "statusCategory": {"key": STATES[name]}}


class Webhook(Service):
    """A receiver that takes each key once, as the documentation asks."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: dict[str, Any] = {}

    def answer(self, request: Request) -> tuple[int, Any]:
        self.taken.setdefault(request.headers["Idempotency-Key"], request.body)
        return 200, {"id": f"hook-{request.body['ticket']['id']}"}
