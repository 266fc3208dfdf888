"""Tickets as GitHub issues, through the REST API (2022-11-28).

No request of GitHub's says "create unless it is there", so the mark in an issue's first line is looked for first: in
the list of issues with our label, which knows a new issue at once, where the search index takes its time.
"""

from __future__ import annotations

import requests

from assay.actions.sinks.remote import Answer, Remote
from assay.actions.sinks.sink import Gone, Refused
from assay.actions.sinks.words import markdown, marked, title
from assay.model.ticket import Listed
from assay.model.ticket_route import GitHub

LONGEST = 60_000
PAGES, PER_PAGE = 100, 100
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class GitHubIssues:
    """One issue a ticket; its web address is how the sink calls it."""

    def __init__(self, about: GitHub, token: str, where: str) -> None:
        self._label, self._issues = about.label, f"/repos/{about.repository}/issues"

        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {token}"
            return request

        self._remote = Remote(about.api, where, sign)
        self._known: dict[str, str] | None = None

    def deliver(self, listed: Listed, version: str, external: str) -> str:  # noqa: ARG002 — an issue is set, not changed
        """Create or change the issue; its state follows the ticket's."""
        if external and self._set(external, listed):
            return external
        known = self._found(listed.ticket.id)
        if known and self._set(known, listed):
            return known
        created = self._create(listed)
        if listed.closed_at:
            self._set(created, listed)
        return created

    def holds(self, external: str) -> bool:  # noqa: ARG002 — the protocol's
        """Say that it is there: only a request could tell."""
        return True

    def _set(self, url: str, listed: Listed) -> bool:
        """Bring an issue to what the ticket is; say whether there is such an issue."""
        closed = bool(listed.closed_at)
        state = {"state": "closed" if closed else "open", "state_reason": "completed" if closed else "reopened"}
        try:
            self._ask("PATCH", f"/{url.rpartition('/')[2]}", {**_content(listed), **state})
        except Gone:
            self._known = None
            return False
        return True

    def _create(self, listed: Listed) -> str:
        known, self._known = self._known or {}, None  # whatever comes of an answer that is lost: the next look shows it
        answer = self._ask("POST", "", {**_content(listed), "labels": [self._label]})
        created = self._remote.text(answer, "html_url")
        self._known = known | {listed.ticket.id: created}
        return created

    def _found(self, ticket: str) -> str:
        if self._known is None:
            self._known = self._all()
        return self._known.get(ticket, "")

    def _all(self) -> dict[str, str]:
        """Return the address of the oldest issue of each ticket."""
        found: dict[str, str] = {}
        for page in range(1, PAGES + 1):
            query = {"labels": self._label, "state": "all", "sort": "created", "direction": "desc"}
            query |= {"per_page": str(PER_PAGE), "page": str(page)}
            issues = self._remote.listed(self._remote.ask("GET", self._issues, query=query, headers=HEADERS))
            ours = [one for one in issues if "pull_request" not in one]
            found |= {marked(str(one.get("body"))): str(one.get("html_url")) for one in ours}
            if len(issues) < PER_PAGE:
                return found
        fix = "give this fleet a label of its own"
        raise Refused(f"more than {PAGES * PER_PAGE} issues have the label", where=self._remote.where, fix=fix)

    def _ask(self, method: str, path: str, body: dict[str, object]) -> Answer:
        return self._remote.ask(method, self._issues + path, body, headers=HEADERS)


def _content(listed: Listed) -> dict[str, object]:
    return {"title": title(listed), "body": markdown(listed)[:LONGEST]}
