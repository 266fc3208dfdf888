"""The stand-ins for GitHub and Jira refuse what the real ones refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ticket_sinks import SERVICES, Request, find_fault

GITHUB = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28", "User-Agent": "x"}
JSON = {"Content-Type": "application/json"}
ISSUE = {"project": {"key": "DC"}, "issuetype": {"name": "Task"}, "summary": "x"}
DOC = {"type": "doc", "version": 1, "content": []}


def ask(service: str, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> int:
    headers = GITHUB if service == "github" else JSON
    fault = find_fault(service, Request(method, path, query or {}, headers, body, b""), path)
    return fault[0] if fault else 200


@pytest.mark.parametrize(
    ("service", "method", "path", "body", "status"),
    [
        ("github", "POST", "/repos/a/b/issues", {"title": "x"}, 200),
        ("github", "POST", "/repos/a/b/issue", {"title": "x"}, 404),
        ("github", "PUT", "/repos/a/b/issues/1", {"title": "x"}, 405),
        ("github", "POST", "/repos/a/b/issues", {"body": "x"}, 422),
        ("github", "POST", "/repos/a/b/issues", {"title": "x" * 257}, 422),
        ("github", "POST", "/repos/a/b/issues", {"title": "x", "body": "x" * 65_537}, 422),
        ("github", "PATCH", "/repos/a/b/issues/1", {"state": "done"}, 422),
        ("github", "PATCH", "/repos/a/b/issues/1", {"state": "closed", "reason": "completed"}, 422),
        ("jira-2", "POST", "/issue", {"fields": ISSUE}, 200),
        ("jira-2", "POST", "/issue", {"fields": {**ISSUE, "summary": "two\nlines"}}, 400),
        ("jira-2", "POST", "/issue", {"fields": {**ISSUE, "labels": ["two words"]}}, 400),
        ("jira-2", "POST", "/issue", {"fields": {**ISSUE, "description": DOC}}, 400),
        ("jira-3", "POST", "/issue", {"fields": {**ISSUE, "description": DOC}}, 200),
        ("jira-3", "POST", "/issue", {"fields": {**ISSUE, "description": "text"}}, 400),
        ("jira-3", "POST", "/issue/DC-1/comment", {"body": "text"}, 400),
        ("jira-3", "POST", "/issue/DC-1/transitions", {"transition": {"name": "Done"}}, 400),
    ],
)
def test_a_request_is_taken_or_refused(service: str, method: str, path: str, body: Any, status: int) -> None:
    assert ask(service, method, path, body) == status


@pytest.mark.parametrize(("service", "path"), [("jira-2", "/search/jql"), ("jira-3", "/search")])
def test_each_version_of_jira_has_a_search_of_its_own(service: str, path: str) -> None:
    assert ask(service, "GET", path, query={"jql": "project = DC"}) == 404


def test_github_wants_the_version_of_its_api() -> None:
    headers = {name: text for name, text in GITHUB.items() if name != "X-GitHub-Api-Version"}
    request = Request("POST", "/repos/a/b/issues", {}, headers, {"title": "x"}, b"")
    assert find_fault("github", request, request.path) is not None


def test_each_service_says_where_that_stands() -> None:
    assert all("https://" in service["source"] for service in SERVICES.values())
