"""What an inventory may say of the Prometheus that scrapes a node already."""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from assay.model.credentials import Credentials
from assay.model.monitoring import Label
from assay.model.spec import Name, Strict

Url = Annotated[str, Field(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")]
LabelText = Annotated[str, Field(pattern=r"^[^{}]*(\{name\}[^{}]*)?$")]
FINGERPRINT = r"^(sha256:[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31})?$"


class Metrics(Strict):
    """Which Prometheus knows the node, and by which labels.

    `match`: a series is the node's when one of the labels with `{name}` reads so, filled with the node's name; labels
    without it narrow every query (`cluster: hall1`). `credentials` hold `user:password`, `token` a bearer's. A sample
    may be `stale_s` old. XIDs are looked for over `xid_hours`, which must be longer than from pass to pass.
    `monitoring` names the document that maps metrics to readings.
    """

    url: Url
    match: dict[Label, LabelText] = Field(min_length=1)
    credentials: Credentials | None = None
    token: Credentials | None = None
    ca: str = ""
    fingerprint: str = Field(default="", pattern=FINGERPRINT)
    stale_s: float = Field(default=180, gt=0, le=3600)
    xid_hours: float = Field(default=24, gt=0, le=168)
    monitoring: Name = "exporters"

    @model_validator(mode="after")
    def _makes_sense(self) -> Metrics:
        if not any("{name}" in text for text in self.match.values()):
            raise ValueError("no label of `match` names the node: write {name} where its name stands")
        if self.credentials and self.token:
            raise ValueError("give credentials or token, not both")
        if (self.credentials or self.token) and self.url.startswith("http://") and not _is_here(self.url):
            raise ValueError("secrets do not travel in the clear: use https, or a Prometheus on this machine")
        return self


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
