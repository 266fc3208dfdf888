"""The line to a service is cut on its deadline, and what cuts it touches no later request."""

from __future__ import annotations

import time

from assay.adapters.bmc.tls import DeadlineHttpAdapter, make_ca_context


def test_a_cut_that_has_begun_is_over_before_the_next_request(monkeypatch):
    line, cuts = DeadlineHttpAdapter(make_ca_context(None)), []

    def slow(thread: int) -> None:
        time.sleep(0.2)
        cuts.append("cut")

    monkeypatch.setattr(line, "cut", slow)
    with line.cut_after(0.0) as late:
        assert late.wait(60)
    assert cuts == ["cut"]


def test_what_ends_in_time_is_not_cut(monkeypatch):
    line, cuts = DeadlineHttpAdapter(make_ca_context(None)), []
    monkeypatch.setattr(line, "cut", lambda thread: cuts.append("cut"))
    with line.cut_after(3600.0) as late:
        pass
    assert (cuts, late.is_set()) == ([], False)
