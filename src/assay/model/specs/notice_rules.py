"""NoticeRules: where customers are told that a node left service, when it is expected back, and that it is back."""

from __future__ import annotations

from pydantic import Field

from assay.model.specs.access_rules import VisitorName
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.sink_settings import SinkUrl
from assay.model.specs.spec_document import StrictModel


class SchedulerNotices(StrictModel):
    """Notices on the nodes themselves: a condition and Events in Kubernetes, a comment in Slurm.

    `shown`: whether assay writes them. `every_minutes`: how often the text of a node that stays out may change, how
    often it is read again, and how soon a notice that could not be shown is tried again.
    """

    shown: bool = False
    every_minutes: float = Field(default=60, ge=5, le=1440)


class CustomerWebhook(StrictModel):
    """A signed POST of JSON about the nodes of some `pools`: one for all that is new.

    `url`: where it goes. `credentials`: the key that signs it. `every_minutes`: how soon the next one may follow.
    """

    pools: list[str] = Field(min_length=1)
    url: SinkUrl
    credentials: CredentialReference
    every_minutes: float = Field(default=10, ge=1, le=1440)


class NoticeRules(StrictModel):
    """Where customers are told what becomes of their nodes.

    `scheduler`: on the nodes. `webhooks`: by name of customer.
    """

    scheduler: SchedulerNotices = Field(default_factory=SchedulerNotices)
    webhooks: dict[VisitorName, CustomerWebhook] = Field(default={})
