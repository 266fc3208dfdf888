"""TicketRoute: one place beside the ledger to which tickets are delivered."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.credentials import Credentials
from assay.model.spec import Spec, Strict

FOLDER = ".assay/tickets"
LOCAL = r"^http://(localhost|127\.0\.0\.1)(:[0-9]+)?(/[^\s@]*)?$"
Url = Annotated[str, Field(pattern=rf"^https://[^\s/@]+(/[^\s@]*)?$|{LOCAL}")]


class Markdown(Strict):
    """One file a ticket in `folder`, which starts at the repository: one that phones can read, or that git syncs."""

    folder: str = Field(default=FOLDER, min_length=1)


class GitHub(Strict):
    """One issue a ticket in `repository`, all with `label`. `credentials` lead to a token that may write issues."""

    repository: str = Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")
    credentials: Credentials
    api: Url = "https://api.github.com"
    label: str = Field(default="assay", pattern=r"^[^,\s]+$")


class Jira(Strict):
    """One issue a ticket in `project`. `credentials` lead to `user:token` (Cloud) or to a personal token (Data Center).

    `version` of the REST API: 3 for Cloud, 2 for Data Center. `close_by` and `reopen_by` name the transitions where the
    workflow has several that would do.
    """

    url: Url
    project: str = Field(pattern=r"^[A-Z][A-Z0-9_]+$")
    credentials: Credentials
    version: int = Field(default=2, ge=2, le=3)
    issue_type: str = Field(default="Task", min_length=1)
    close_by: str = ""
    reopen_by: str = ""


class Webhook(Strict):
    """A POST of JSON for each change of a ticket, signed with the key to which `credentials` lead."""

    url: Url
    credentials: Credentials


class TicketRoute(Spec):
    """Where tickets go: exactly one of `markdown`, `github`, `jira` and `webhook`. A fleet may have many such routes.

    Without any, each ticket is a Markdown file in `.assay/tickets`.
    """

    kind: Literal["TicketRoute"]
    markdown: Markdown | None = None
    github: GitHub | None = None
    jira: Jira | None = None
    webhook: Webhook | None = None

    @property
    def credentials(self) -> Credentials | None:
        """Where the secret of this route is, None where it needs none."""
        remote = self.github or self.jira or self.webhook
        return remote.credentials if remote else None

    @model_validator(mode="after")
    def _exactly_one(self) -> TicketRoute:
        if sum(one is not None for one in (self.markdown, self.github, self.jira, self.webhook)) != 1:
            raise ValueError("give exactly one of markdown, github, jira and webhook")
        return self
