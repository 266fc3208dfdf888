"""The ticket sink `jira`: tickets as Jira issues, through the REST API: version 3 on Cloud, 2 on Data Center.

Each issue has the label `assay-ticket-ID`, by which the sink finds an issue that an interrupted delivery left.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from assay.adapters.tickets.markdown import format_last_turn, format_ticket_markdown, format_ticket_title
from assay.adapters.tickets.sink import SinkContext, TicketNotFound, TicketRefusal
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.technician_work import SinkSettings, SinkUrl
from assay.model.ticket import TicketRecord

if TYPE_CHECKING:
    import requests

MAX_BODY_LENGTH = 30_000
SEARCH_PATHS = {2: "/search", 3: "/search/jql"}


class JiraRoute(SinkSettings):
    """One issue for each ticket in `project`. `credentials`: `user:token` (Cloud) or a personal token (Data Center).

    `version` of the REST API: 3 for Cloud, 2 for Data Center. `close_by` and `reopen_by` name the transition to take
    if the workflow has several that close or reopen an issue.

    `url`: the address of the site. `issue_type`: the type of new issues.
    """

    destination_fields: ClassVar = ("url", "project")

    url: SinkUrl
    project: str = Field(pattern=r"^[A-Z][A-Z0-9_]+$")
    credentials: CredentialReference
    version: int = Field(default=2, ge=2, le=3)
    issue_type: str = Field(default="Task", min_length=1)
    close_by: str = ""
    reopen_by: str = ""


class JiraIssueSink:
    """One issue for each ticket. The issue's web address is the ticket's external id."""

    settings_model = JiraRoute
    is_local = False

    def __init__(self, settings: JiraRoute, context: SinkContext) -> None:
        from assay.adapters.tickets.sink import SinkHttpClient

        secret = context.secret
        is_login = ":" in secret
        token = f"Basic {base64.b64encode(secret.encode()).decode()}" if is_login else f"Bearer {secret}"

        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = token
            return request

        self._settings, self._url = settings, settings.url.rstrip("/")
        self._client = SinkHttpClient(f"{self._url}/rest/api/{settings.version}", context.where, sign)

    def deliver(self, record: TicketRecord, version: str, external_id: str) -> str:  # noqa: ARG002 — an issue is set, not changed
        """Create or update the issue, move it to the ticket's state, and comment on each turn."""
        key = external_id.rpartition("/")[2]
        if not (key and self._update_issue(key, record)):
            key = self._find_issue(record.ticket.id)
            key = key if key and self._update_issue(key, record) else self._create_issue(record)
        self._transition_issue(key, record)
        self._comment(key, record)
        return f"{self._url}/browse/{key}"

    def holds(self, external_id: str) -> bool:  # noqa: ARG002 — the protocol's
        """Return True: only a request could tell."""
        return True

    def _find_issue(self, ticket: str) -> str:
        jql = f'project = "{self._settings.project}" AND labels = "{_label(ticket)}" ORDER BY created ASC'
        path = SEARCH_PATHS[self._settings.version]
        answer = self._client.request("GET", path, query={"jql": jql, "fields": "summary"})
        issues = self._client.read_list(answer, "issues")
        return str(issues[0].get("key", "")) if issues else ""

    def _create_issue(self, record: TicketRecord) -> str:
        fields = {
            "project": {"key": self._settings.project},
            "issuetype": {"name": self._settings.issue_type},
            "labels": ["assay", _label(record.ticket.id)],
            **self._build_content(record),
        }
        return self._client.read_text(self._client.request("POST", "/issue", {"fields": fields}), "key")

    def _update_issue(self, key: str, record: TicketRecord) -> bool:
        """Set an issue's summary and description. Return False if the issue no longer exists."""
        try:
            self._client.request("PUT", f"/issue/{key}", {"fields": self._build_content(record)})
        except TicketNotFound:
            return False
        return True

    def _transition_issue(self, key: str, record: TicketRecord) -> None:
        """Take a transition to a state of the category `done`, or to another one, unless the issue is in one."""
        must_be_done = bool(record.closed_at)
        answer = self._client.request("GET", f"/issue/{key}", query={"fields": "status"})
        if _is_done(_get_nested(answer.data, "fields", "status")) == must_be_done:
            return
        transitions = self._client.read_list(self._client.request("GET", f"/issue/{key}/transitions"), "transitions")
        name = self._settings.close_by if must_be_done else self._settings.reopen_by
        fitting = [
            transition
            for transition in transitions
            if _is_done(transition.get("to")) == must_be_done and name in ("", transition.get("name"))
        ]
        if not fitting:
            offered = ", ".join(str(transition.get("name")) for transition in transitions) or "none"
            verb, setting = ("close", "close_by") if must_be_done else ("reopen", "reopen_by")
            raise TicketRefusal(
                f"no transition of {key} would {verb} it. It has these: {offered}",
                where=self._client.where,
                fix=f"name one of them in {setting}, or change the workflow",
            )
        self._client.request("POST", f"/issue/{key}/transitions", {"transition": {"id": fitting[0].get("id")}})

    def _comment(self, key: str, record: TicketRecord) -> None:
        """Comment on the last turn, unless a comment has its mark."""
        text, mark = format_last_turn(record)
        if not text:
            return
        path, query = f"/issue/{key}/comment", {"orderBy": "-created", "maxResults": "100"}
        comments = self._client.read_list(self._client.request("GET", path, query=query), "comments")
        if any(mark in json.dumps(comment.get("body"), ensure_ascii=False) for comment in comments):
            return
        self._client.request("POST", path, {"body": self._format_text(text)})

    def _build_content(self, record: TicketRecord) -> dict[str, object]:
        text = format_ticket_markdown(record, folds=False)[:MAX_BODY_LENGTH]
        return {"summary": format_ticket_title(record), "description": self._format_text(text)}

    def _format_text(self, text: str) -> Any:
        """Return a text in the form of this API version, in which nothing counts as markup."""
        if self._settings.version == 2:
            return "{noformat}\n" + text.replace("{noformat}", "{ noformat }") + "\n{noformat}"
        block = {"type": "codeBlock", "content": [{"type": "text", "text": text}]}
        return {"type": "doc", "version": 1, "content": [block]}


def _label(ticket: str) -> str:
    return f"assay-ticket-{ticket}"


def _is_done(status: Any) -> bool:
    return bool(_get_nested(status, "statusCategory", "key") == "done")


def _get_nested(data: Any, *steps: str) -> Any:
    for step in steps:
        data = data.get(step) if isinstance(data, dict) else None
    return data
