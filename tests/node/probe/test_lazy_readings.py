"""A lazy tree reads as the plain one would, whatever shape its questions have."""

from functools import partial

from assay.model.reading import failed, value
from assay.node.probe.node_access import TimedQuestion, resolve_lazy


def test_questions_are_asked_wherever_they_stand():
    lazy = {"name": partial(value, "H100"), "pcie": {"width": TimedQuestion(0.5, lambda: value(16))}, "known": value(1)}
    assert resolve_lazy(lazy) == {"name": value("H100"), "pcie": {"width": value(16)}, "known": value(1)}


def test_an_answer_may_be_a_branch_of_further_questions():
    devices = {"0000:1b:00.0": lambda: {"serial": partial(value, "7")}, "0000:43:00.0": lambda: failed("GPU is lost")}
    assert resolve_lazy(lambda: devices) == {
        "0000:1b:00.0": {"serial": value("7")},
        "0000:43:00.0": failed("GPU is lost"),
    }


def test_a_value_that_is_itself_a_mapping_stays_as_it_was_read():
    assert resolve_lazy(lambda: value({"a": 1})) == value({"a": 1})
