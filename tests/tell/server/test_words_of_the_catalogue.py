"""What the controller's catalogue looks for, the agent sends: the one cannot outgrow the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.declare.loader import load_fleet
from assay.model.specs.fault_catalog import FaultCatalog
from assay.node.probe.kernel_log import KernelLogFilter
from assay.tell.server.intake_routes import list_kernel_words
from tests.support.places import ROOT

TREATED = {"summary": "x", "source": "us", "severity": "degraded", "blame": "hardware", "remedy": "none"}


def catalog(**kernel) -> FaultCatalog:
    classes = {"acme.widget": {**TREATED, "kernel_log": kernel}}
    return FaultCatalog.model_validate({"kind": "FaultCatalog", "name": "x", "sources": ["us"], "classes": classes})


def record(text: str) -> bytes:
    return f"6,1,1,-;{text}".encode()


def test_the_words_of_a_class_bring_its_informational_lines():
    words = list_kernel_words(catalog(pattern=r"acme: widget \d+ gone", holds=["acme: widget"]))
    assert words == ["acme: widget"]
    assert KernelLogFilter(words).rate_record(record("acme: widget 7 gone")) == 2
    assert KernelLogFilter().rate_record(record("acme: widget 7 gone")) == 0


def test_a_beginning_with_a_number_is_sought_by_its_longest_text():
    words = list_kernel_words(catalog(pattern=r"gone", begins=["{<number>}[acme]"]))
    assert words == ["}[acme]"]


def test_a_class_that_names_no_words_brings_every_line():
    assert KernelLogFilter(list_kernel_words(catalog(pattern=r"acme.*gone"))).rate_record(record("acme 7 gone")) == 2


@pytest.fixture(scope="module")
def ours() -> FaultCatalog:
    return load_fleet(ROOT).fault_catalog


def test_our_own_catalogue_does_not_ask_for_every_line(ours):
    assert "" not in list_kernel_words(ours)


@given(st.data())
def test_whatever_our_catalogue_recognises_the_agent_sends(ours, data):
    rules = [fault.kernel_log_pattern for fault in ours.classes.values() if fault.kernel_log_pattern]
    text = data.draw(st.sampled_from(rules).flatmap(lambda rule: st.from_regex(rule.pattern)))
    if list(ours.kernel_log_matcher.find_faults(text)):
        assert KernelLogFilter(list_kernel_words(ours)).rate_record(record(text)) == 2
