"""A login connects within its time: the redfish library takes no limit for it."""

from __future__ import annotations

from typing import Any

import pytest
from requests import PreparedRequest
from requests.adapters import HTTPAdapter

from assay.adapters.bmc.tls import DeadlineHttpAdapter, make_pinned_context


def test_a_request_without_a_limit_gets_that_of_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def send(_: Any, __: Any, stream: bool, timeout: Any, **___: Any) -> None:
        limits.append(timeout)

    monkeypatch.setattr(HTTPAdapter, "send", send)
    adapter = DeadlineHttpAdapter(make_pinned_context())
    with adapter.cut_after(1.5):
        adapter.send(PreparedRequest())
        adapter.send(PreparedRequest(), timeout=0.5)
    adapter.send(PreparedRequest())
    assert limits == [1.5, 0.5, None]
