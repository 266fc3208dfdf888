"""What `assay explain --for customer` says of a fault class and of a state, in words that need no glossary.

NoticeRules: where customers are told that a node left service, when it is expected back, and that it is back.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.serving import VisitorName
from assay.model.specs.spec_document import StrictModel
from assay.model.specs.technician_work import SinkUrl

SINCE = "{since}"
"""Stands for the time when the fault was first seen."""
_PLACEHOLDER = re.compile(r"\{[^}]*\}?|\}")


def _check_placeholders(text: str) -> str:
    if wrong := sorted({placeholder for placeholder in _PLACEHOLDER.findall(text) if placeholder != SINCE}):
        raise ValueError(f"{wrong[0]!r} has no meaning here; the only placeholder is {SINCE}")
    return text


CustomerText = Annotated[str, AfterValidator(_check_placeholders)]
"""Whole sentences. `{since}` stands for a time."""


class FaultCustomerWords(StrictModel):
    """A fault class for customers: what `happened` (default: the class's summary), and what it `means` for their work.

    In `means`, `{since}` is when the fault was first seen. Both are whole sentences. `also_before`: the fault may have
    harmed jobs before it was seen, so it counts even if a test finds it on an empty node.
    """

    happened: str = ""
    means: CustomerText = ""
    also_before: bool = False


class StateCustomerWords(StrictModel):
    """A state for customers: what it `means` for their work, and what we are `doing`.

    `back` completes the sentence "When it is back is not known yet: …" where nothing supports an estimate.
    """

    means: str = ""
    doing: str = ""
    back: str = ""


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
