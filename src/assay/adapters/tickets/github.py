"""The ticket sink `github`: tickets as GitHub issues, through the REST API (2022-11-28).

GitHub has no request "create unless it exists". So the sink first looks for the mark in an issue's first line. It
lists the issues with our label: that list has a new issue at once, the search index only after a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from assay.adapters.tickets.markdown import (
    find_ticket_mark,
    format_last_turn,
    format_ticket_markdown,
    format_ticket_title,
)
from assay.adapters.tickets.sink import SinkContext, TicketNotFound, TicketRefusal
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.technician_work import SinkSettings, SinkUrl
from assay.model.ticket import TicketRecord

if TYPE_CHECKING:
    import requests

    from assay.adapters.tickets.sink import SinkHttpAnswer

MAX_BODY_LENGTH = 60_000
MAX_PAGES, ISSUES_PER_PAGE = 100, 100
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class GitHubRoute(SinkSettings):
    """One issue for each ticket in `repository`, with `label`. `credentials`: a token that may write issues.

    `api`: the address of the REST API.
    """

    destination_fields: ClassVar = ("api", "repository")

    repository: str = Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")
    credentials: CredentialReference
    api: SinkUrl = "https://api.github.com"
    label: str = Field(default="assay", pattern=r"^[^,\s]+$")


class GitHubIssueSink:
    """One issue for each ticket. The issue's web address is the ticket's external id."""

    settings_model = GitHubRoute
    is_local = False

    def __init__(self, settings: GitHubRoute, context: SinkContext) -> None:
        from assay.adapters.tickets.sink import SinkHttpClient

        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {context.secret}"
            return request

        self._label, self._issues_path = settings.label, f"/repos/{settings.repository}/issues"
        self._client = SinkHttpClient(settings.api, context.where, sign)
        self._issues_by_ticket: dict[str, str] | None = None

    def deliver(self, record: TicketRecord, version: str, external_id: str) -> str:  # noqa: ARG002 — an issue is set, not changed
        """Create or update the issue, which is open as long as its ticket is, and comment on each turn."""
        address = self._set_issue(record, external_id)
        self._comment(address, record)
        return address

    def _set_issue(self, record: TicketRecord, external_id: str) -> str:
        if external_id and self._update_issue(external_id, record):
            return external_id
        if self._issues_by_ticket is None:
            self._issues_by_ticket = self._list_issues()
        known = self._issues_by_ticket.get(record.ticket.id, "")
        if known and self._update_issue(known, record):
            return known
        created = self._create_issue(record)
        if record.closed_at:
            self._update_issue(created, record)
        return created

    def holds(self, external_id: str) -> bool:  # noqa: ARG002 — the protocol's
        """Return True: only a request could tell."""
        return True

    def _update_issue(self, url: str, record: TicketRecord) -> bool:
        """Set an issue's title, text and state. Return False if the issue no longer exists."""
        closed = bool(record.closed_at)
        state = {"state": "closed" if closed else "open", "state_reason": "completed" if closed else "reopened"}
        try:
            self._request("PATCH", f"/{url.rpartition('/')[2]}", {**_build_content(record), **state})
        except TicketNotFound:
            self._issues_by_ticket = None
            return False
        return True

    def _create_issue(self, record: TicketRecord) -> str:
        known = self._issues_by_ticket or {}
        self._issues_by_ticket = None  # an issue whose answer is lost is found by the next listing
        answer = self._request("POST", "", {**_build_content(record), "labels": [self._label]})
        created = self._client.read_text(answer, "html_url")
        self._issues_by_ticket = known | {record.ticket.id: created}
        return created

    def _comment(self, url: str, record: TicketRecord) -> None:
        """Comment on the last turn, unless a comment has its mark."""
        text, mark = format_last_turn(record)
        path = f"{self._issues_path}/{url.rpartition('/')[2]}/comments"
        for page in range(1, MAX_PAGES + 1) if text else ():
            query = {"per_page": str(ISSUES_PER_PAGE), "page": str(page)}
            comments = self._client.read_list(self._client.request("GET", path, query=query, headers=HEADERS))
            if any(mark in str(comment.get("body")) for comment in comments):
                return
            if len(comments) < ISSUES_PER_PAGE:
                self._client.request("POST", path, {"body": text}, headers=HEADERS)
                return

    def _list_issues(self) -> dict[str, str]:
        """Return the address of the oldest issue of each ticket."""
        addresses: dict[str, str] = {}
        for page in range(1, MAX_PAGES + 1):
            query = {"labels": self._label, "state": "all", "sort": "created", "direction": "desc"}
            query |= {"per_page": str(ISSUES_PER_PAGE), "page": str(page)}
            answer = self._client.request("GET", self._issues_path, query=query, headers=HEADERS)
            issues = self._client.read_list(answer)
            for issue in issues:
                if "pull_request" not in issue:
                    addresses[find_ticket_mark(str(issue.get("body")))] = str(issue.get("html_url"))
            if len(issues) < ISSUES_PER_PAGE:
                return addresses
        problem = f"more than {MAX_PAGES * ISSUES_PER_PAGE} issues have the label"
        raise TicketRefusal(problem, where=self._client.where, fix="give this fleet a label of its own")

    def _request(self, method: str, path: str, body: dict[str, object]) -> SinkHttpAnswer:
        return self._client.request(method, self._issues_path + path, body, headers=HEADERS)


def _build_content(record: TicketRecord) -> dict[str, object]:
    return {"title": format_ticket_title(record), "body": format_ticket_markdown(record)[:MAX_BODY_LENGTH]}
