"""Tickets as GitHub issues, through the REST API (2022-11-28).

No request of GitHub's says "create unless it is there", so the mark in an issue's first line is looked for first: in
the list of issues with our label, which knows a new issue at once, where the search index takes its time.
"""

from __future__ import annotations

import requests

from assay.model.specs.ticket_routes_and_checklists import GitHubRoute
from assay.model.ticket import TicketRecord
from assay.tickets.sink_http_client import SinkHttpAnswer, SinkHttpClient
from assay.tickets.sink_protocol import TicketNotFound, TicketRefusal
from assay.tickets.ticket_markdown import find_ticket_mark, format_ticket_markdown, format_ticket_title

MAX_BODY_LENGTH = 60_000
PAGES, PER_PAGE = 100, 100
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class GitHubIssueSink:
    """One issue a ticket; its web address is how the sink calls it."""

    def __init__(self, about: GitHubRoute, token: str, where: str) -> None:
        self._label, self._issues = about.label, f"/repos/{about.repository}/issues"

        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {token}"
            return request

        self._remote = SinkHttpClient(about.api, where, sign)
        self._issues_by_ticket: dict[str, str] | None = None

    def deliver(self, listed: TicketRecord, version: str, external: str) -> str:  # noqa: ARG002 — an issue is set, not changed
        """Create or change the issue; its state follows the ticket's."""
        if external and self._update_issue(external, listed):
            return external
        known = self._find_issue(listed.ticket.id)
        if known and self._update_issue(known, listed):
            return known
        created = self._create(listed)
        if listed.closed_at:
            self._update_issue(created, listed)
        return created

    def holds(self, external: str) -> bool:  # noqa: ARG002 — the protocol's
        """Say that it is there: only a request could tell."""
        return True

    def _update_issue(self, url: str, listed: TicketRecord) -> bool:
        """Bring an issue to what the ticket is; say whether there is such an issue."""
        closed = bool(listed.closed_at)
        state = {"state": "closed" if closed else "open", "state_reason": "completed" if closed else "reopened"}
        try:
            self._request("PATCH", f"/{url.rpartition('/')[2]}", {**_build_content(listed), **state})
        except TicketNotFound:
            self._issues_by_ticket = None
            return False
        return True

    def _create(self, listed: TicketRecord) -> str:
        known, self._issues_by_ticket = (
            self._issues_by_ticket or {},
            None,
        )  # whatever comes of an answer that is lost: the next look shows it
        answer = self._request("POST", "", {**_build_content(listed), "labels": [self._label]})
        created = self._remote.read_text(answer, "html_url")
        self._issues_by_ticket = known | {listed.ticket.id: created}
        return created

    def _find_issue(self, ticket: str) -> str:
        if self._issues_by_ticket is None:
            self._issues_by_ticket = self._list_issues()
        return self._issues_by_ticket.get(ticket, "")

    def _list_issues(self) -> dict[str, str]:
        """Return the address of the oldest issue of each ticket."""
        found: dict[str, str] = {}
        for page in range(1, PAGES + 1):
            query = {"labels": self._label, "state": "all", "sort": "created", "direction": "desc"}
            query |= {"per_page": str(PER_PAGE), "page": str(page)}
            issues = self._remote.read_list(self._remote.request("GET", self._issues, query=query, headers=HEADERS))
            ours = [one for one in issues if "pull_request" not in one]
            found |= {find_ticket_mark(str(one.get("body"))): str(one.get("html_url")) for one in ours}
            if len(issues) < PER_PAGE:
                return found
        fix = "give this fleet a label of its own"
        raise TicketRefusal(f"more than {PAGES * PER_PAGE} issues have the label", where=self._remote.where, fix=fix)

    def _request(self, method: str, path: str, body: dict[str, object]) -> SinkHttpAnswer:
        return self._remote.request(method, self._issues + path, body, headers=HEADERS)


def _build_content(listed: TicketRecord) -> dict[str, object]:
    return {"title": format_ticket_title(listed), "body": format_ticket_markdown(listed)[:MAX_BODY_LENGTH]}
