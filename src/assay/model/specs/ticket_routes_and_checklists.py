"""TicketRoute: one place beside the ledger to which tickets are delivered.

Checklists: what a technician looks at before a node is certified, and photographs before it is sent back.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

OneLineText = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\n]+$")]


class TechnicianInspection(StrictModel):
    """What hands do in a state: `title` says it in a few words, `steps` one after the other, `done` when it is over."""

    title: OneLineText
    steps: list[OneLineText] = Field(min_length=1, max_length=20)
    done: OneLineText


class Checklists(SpecDocument):
    """What technicians check, by the state that waits for their word, and what they photograph of what goes back.

    A node in such a state has a ticket with these steps, whichever way it came there. `photos`: name → what must be
    seen on it; a file `NAME.jpg` in the dossier's folder answers it.
    """

    kind: Literal["Checklists"]
    sources: list[str] = Field(min_length=1)
    states: dict[str, TechnicianInspection] = Field(default={})
    photos: dict[SpecName, OneLineText] = Field(default={})


DEFAULT_TICKET_FOLDER = ".assay/tickets"
LOCAL_URL = r"^http://(localhost|127\.0\.0\.1)(:[0-9]+)?(/[^\s@]*)?$"
SinkUrl = Annotated[str, Field(pattern=rf"^https://[^\s/@]+(/[^\s@]*)?$|{LOCAL_URL}")]


class MarkdownRoute(StrictModel):
    """One file a ticket in `folder`, which starts at the repository: one that phones can read, or that git syncs."""

    folder: str = Field(default=DEFAULT_TICKET_FOLDER, min_length=1)


class GitHubRoute(StrictModel):
    """One issue a ticket in `repository`, all with `label`. `credentials` lead to a token that may write issues."""

    repository: str = Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")
    credentials: CredentialReference
    api: SinkUrl = "https://api.github.com"
    label: str = Field(default="assay", pattern=r"^[^,\s]+$")


class JiraRoute(StrictModel):
    """One issue a ticket in `project`. `credentials` lead to `user:token` (Cloud) or to a personal token (Data Center).

    `version` of the REST API: 3 for Cloud, 2 for Data Center. `close_by` and `reopen_by` name the transitions where the
    workflow has several that would do.
    """

    url: SinkUrl
    project: str = Field(pattern=r"^[A-Z][A-Z0-9_]+$")
    credentials: CredentialReference
    version: int = Field(default=2, ge=2, le=3)
    issue_type: str = Field(default="Task", min_length=1)
    close_by: str = ""
    reopen_by: str = ""


class WebhookRoute(StrictModel):
    """A POST of JSON for each change of a ticket, signed with the key to which `credentials` lead."""

    url: SinkUrl
    credentials: CredentialReference


class TicketRoute(SpecDocument):
    """Where tickets go: exactly one of `markdown`, `github`, `jira` and `webhook`. A fleet may have many such routes.

    Without any, each ticket is a Markdown file in `.assay/tickets`.
    """

    kind: Literal["TicketRoute"]
    markdown: MarkdownRoute | None = None
    github: GitHubRoute | None = None
    jira: JiraRoute | None = None
    webhook: WebhookRoute | None = None

    @property
    def credentials(self) -> CredentialReference | None:
        """Where the secret of this route is, None where it needs none."""
        remote = self.github or self.jira or self.webhook
        return remote.credentials if remote else None

    @model_validator(mode="after")
    def _exactly_one(self) -> TicketRoute:
        if sum(one is not None for one in (self.markdown, self.github, self.jira, self.webhook)) != 1:
            raise ValueError("give exactly one of markdown, github, jira and webhook")
        return self
