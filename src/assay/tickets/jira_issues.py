"""Tickets as Jira issues, through the REST API: version 3 on Cloud, 2 on Data Center.

An issue carries the label `assay-ticket-ID`, by which one that an interrupted delivery left is found again.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import requests

from assay.model.specs.ticket_routes_and_checklists import JiraRoute
from assay.model.ticket import TicketRecord
from assay.tickets.sink_http_client import SinkHttpClient
from assay.tickets.sink_protocol import TicketNotFound, TicketRefusal
from assay.tickets.ticket_markdown import TICKET_MARK, format_ticket_event, format_ticket_markdown, format_ticket_title

MAX_BODY_LENGTH = 30_000
SEARCH_PATHS = {2: "/search", 3: "/search/jql"}


class JiraIssueSink:
    """One issue a ticket; its address for people is how the sink calls it."""

    def __init__(self, about: JiraRoute, secret: str, where: str) -> None:
        self._about = about
        basic = base64.b64encode(secret.encode()).decode()
        word = f"Basic {basic}" if ":" in secret else f"Bearer {secret}"

        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = word
            return request

        self._remote = SinkHttpClient(f"{about.url.rstrip('/')}/rest/api/{about.version}", where, sign)

    def deliver(self, listed: TicketRecord, version: str, external: str) -> str:  # noqa: ARG002 — an issue is set, not changed
        """Create or change the issue, move it where the ticket is, and comment on a closing or reopening."""
        key = external.rpartition("/")[2]
        if not (key and self._update_issue(key, listed)):
            key = self._find_issue(listed.ticket.id)
            key = key if key and self._update_issue(key, listed) else self._create(listed)
        self._transition_issue(key, listed)
        self._comment(key, listed)
        return f"{self._about.url.rstrip('/')}/browse/{key}"

    def holds(self, external: str) -> bool:  # noqa: ARG002 — the protocol's
        """Say that it is there: only a request could tell."""
        return True

    def _find_issue(self, ticket: str) -> str:
        jql = f'project = "{self._about.project}" AND labels = "{_label(ticket)}" ORDER BY created ASC'
        answer = self._remote.request("GET", SEARCH_PATHS[self._about.version], query={"jql": jql, "fields": "summary"})
        issues = self._remote.read_list(answer, "issues")
        return str(issues[0].get("key", "")) if issues else ""

    def _create(self, listed: TicketRecord) -> str:
        about = {"project": {"key": self._about.project}, "issuetype": {"name": self._about.issue_type}}
        fields = {**about, "labels": ["assay", _label(listed.ticket.id)], **self._content(listed)}
        return self._remote.read_text(self._remote.request("POST", "/issue", {"fields": fields}), "key")

    def _update_issue(self, key: str, listed: TicketRecord) -> bool:
        try:
            self._remote.request("PUT", f"/issue/{key}", {"fields": self._content(listed)})
        except TicketNotFound:
            return False
        return True

    def _transition_issue(self, key: str, listed: TicketRecord) -> None:
        """Take a transition to a state of the right category, unless it is in one."""
        wanted = bool(listed.closed_at)
        answer = self._remote.request("GET", f"/issue/{key}", query={"fields": "status"})
        if _is_done(_get_nested(answer.data, "fields", "status")) == wanted:
            return
        ways = self._remote.read_list(self._remote.request("GET", f"/issue/{key}/transitions"), "transitions")
        named = self._about.close_by if wanted else self._about.reopen_by
        fitting = [one for one in ways if _is_done(one.get("to")) == wanted and named in ("", one.get("name"))]
        if not fitting:
            offered = ", ".join(str(one.get("name")) for one in ways) or "none"
            entry = "close_by" if wanted else "reopen_by"
            said = f"{key} has no transition that would {'close' if wanted else 'reopen'} it; it has {offered}"
            raise TicketRefusal(
                said, where=self._remote.where, fix=f"name one of them as {entry}, or change the workflow"
            )
        self._remote.request("POST", f"/issue/{key}/transitions", {"transition": {"id": fitting[0].get("id")}})

    def _comment(self, key: str, listed: TicketRecord) -> None:
        """Say the last closing or reopening, unless a comment says it."""
        turns = [one for one in listed.history if one.what in ("closed", "reopened")]
        if not turns:
            return
        mark = f"{TICKET_MARK} {listed.ticket.id} {turns[-1].what} {turns[-1].at}"
        asked = self._remote.request("GET", f"/issue/{key}/comment", query={"orderBy": "-created", "maxResults": "100"})
        said = [json.dumps(one.get("body"), ensure_ascii=False) for one in self._remote.read_list(asked, "comments")]
        if any(mark in text for text in said):
            return
        self._remote.request(
            "POST", f"/issue/{key}/comment", {"body": self._text(f"{format_ticket_event(turns[-1])}\n{mark}")}
        )

    def _content(self, listed: TicketRecord) -> dict[str, object]:
        return {
            "summary": format_ticket_title(listed),
            "description": self._text(format_ticket_markdown(listed)[:MAX_BODY_LENGTH]),
        }

    def _text(self, text: str) -> Any:
        """Return a text as this version takes it, such that nothing in it is markup."""
        if self._about.version == 2:
            return "{noformat}\n" + text.replace("{noformat}", "{ noformat }") + "\n{noformat}"
        return {
            "type": "doc",
            "version": 1,
            "content": [{"type": "codeBlock", "content": [{"type": "text", "text": text}]}],
        }


def _label(ticket: str) -> str:
    return f"assay-ticket-{ticket}"


def _is_done(status: Any) -> bool:
    return bool(_get_nested(status, "statusCategory", "key") == "done")


def _get_nested(data: Any, *steps: str) -> Any:
    for step in steps:
        data = data.get(step) if isinstance(data, dict) else None
    return data
