"""Two runs compared: what fails anew, what is fixed, what nobody knows any more."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.ledger.runs.writer import OutcomeWriter
from assay.model.errors import AssayError
from assay.model.outcome import VERDICTS, Outcome, SuiteRun
from assay.validate.results.outcome_filter import OutcomeFilter
from assay.validate.results.run_comparison import (
    BAD_VERDICTS,
    CHANGE_KINDS,
    WORSE_KINDS,
    RunComparison,
    classify_change,
)


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("pass", "fail", "new_failure"),
        ("error", "fail", "new_failure"),
        ("skip", "fail", "new_failure"),
        ("fail", "fail", "still_failing"),
        ("fail", "error", "newly_unknown"),
        ("pass", "skip", "newly_unknown"),
        ("skip", "error", "newly_unknown"),
        ("error", "skip", "still_unknown"),
        ("error", "error", "still_unknown"),
        ("skip", "skip", None),
        ("pass", "pass", None),
        ("fail", "pass", "fixed"),
        ("error", "pass", "judged_again"),
        ("skip", "pass", "judged_again"),
        (None, "fail", "new_failure"),
        (None, "error", "newly_unknown"),
        (None, "skip", "appeared"),
        ("fail", None, "vanished"),
    ],
)
def test_every_pair_of_verdicts_has_one_name(was, now, said):
    assert classify_change(was, now) == said


def test_what_a_run_was_not_asked_for_neither_appears_nor_vanishes():
    assert classify_change("fail", None, asked=False) is None
    assert [classify_change(None, now, asked=False) for now in VERDICTS] == [None, "unseen", "unseen", None]


def test_a_failure_that_nothing_excuses_any_more_is_told(keep, of):
    hot = of("heat", "n1", "fail", "91 °C", known="https://issues/7")
    with RunComparison(keep([hot]), keep([replace(hot, known="")])) as found:
        assert (found.counts, found.worse) == ({"unexcused": 1}, 1)
    with RunComparison(keep([replace(hot, known="")]), keep([hot])) as found:
        assert (found.counts, found.worse) == ({"still_failing": 1}, 0)


def test_new_failures_that_are_known_or_of_a_check_on_trial_do_not_count(keep, judged):
    cool = judged({"heat n1": "pass", "heat n2": "pass", "heat n3": "pass"})
    warm = [replace(one, verdict="fail", reason="hot") for one in cool]
    later = [replace(warm[0], known="https://issues/7"), replace(warm[1], observed=True), warm[2]]
    with RunComparison(keep(cool), keep(later)) as found:
        assert found.counts["new_failure"] == 3
        assert (found.deciding["new_failure"], found.worse) == (1, 1)
        assert [(one.known, one.observed, one.decides) for one in found.changes()] == [
            ("https://issues/7", False, False),
            ("", True, False),
            ("", False, True),
        ]


def test_changes_say_what_was_and_what_is(keep, judged):
    old = keep(judged({"heat n1": "fail: 91 °C", "heat n2": "pass", "power n1": "error: no BMC", "fans n2": "pass"}))
    new = keep(judged({"heat n1": "pass", "heat n2": "fail: 92 °C", "power n1": "pass", "fans n2": "error: silent"}))
    with RunComparison(old, new) as found:
        told = [(one.kind, one.subject, one.was, one.now, one.was_reason, one.reason) for one in found.changes()]
        assert told == [
            ("new_failure", "h100-a/n2", "pass", "fail", "", "92 °C"),
            ("newly_unknown", "h100-a/n2", "pass", "error", "", "silent"),
            ("fixed", "h100-a/n1", "fail", "pass", "91 °C", ""),
            ("judged_again", "h100-a/n1", "error", "pass", "no BMC", ""),
        ]
        assert found.both == 4


def test_a_run_of_one_node_says_nothing_of_the_others(keep, judged):
    whole = keep(judged({f"heat n{number}": "fail" for number in range(1, 6)} | {"heat rack-r1": "pass"}))
    one = keep(judged({"heat n1": "pass"}))
    with RunComparison(whole, one) as found:
        assert (dict(found.counts), found.apart) == ({"fixed": 1}, (5, 0))
        assert found.nodes_vanished == ("n2", "n3", "n4", "n5")
    with RunComparison(one, whole) as found:
        assert dict(found.counts) == {"new_failure": 1, "unseen": 4}
        assert found.apart == (0, 5)


def test_what_a_run_has_not_come_to_yet_is_not_missing(keep, judged):
    old, half = keep(judged({"heat n1": "pass", "heat n2": "fail"})), keep(judged({"heat n1": "pass"}), ended="")
    with RunComparison(old, half) as found:
        assert (dict(found.counts), found.apart) == ({}, (1, 0))
    with RunComparison(half, old) as found:
        assert dict(found.counts) == {"unseen": 1}


def test_a_check_that_came_or_went_is_named(keep, judged):
    old = keep(judged({"heat n1": "pass", "fans n1": "fail: 0 rpm"}))
    new = keep(judged({"heat n1": "pass", "power n1": "pass"}))
    with RunComparison(old, new) as found:
        assert found.appeared == ("suites/production/test_power.py::test_power",)
        assert found.vanished == ("suites/production/test_fans.py::test_fans",)
        assert dict(found.counts) == {"vanished": 1, "appeared": 1}
        assert found.worse == 1, "a failure that is not looked for any more is not fixed"


def test_other_phases_and_what_was_left_out_is_not_missed(keep, judged):
    every = judged({"heat n1": "pass", "fans n1": "pass"})
    zap = [replace(every[0], phases=("zap",)), replace(every[1], phases=("production", "zap"))]
    with RunComparison(keep(zap), keep([zap[1]], phases=("production",))) as found:
        assert (dict(found.counts), found.vanished, found.apart) == ({}, (), (1, 0))
    with RunComparison(keep(zap), keep([zap[1]], left_out=[(zap[0].check, zap[0].subject)])) as found:
        assert (dict(found.counts), found.apart) == ({}, (1, 0))


def test_a_check_whose_marks_changed_is_the_same_check(keep, judged):
    old = judged({"heat n1": "fail", "heat n2": "pass"})
    new = [replace(one, phases=("zap", "production"), fault="gpu.thermal") for one in old]
    with RunComparison(keep(old), keep([new[0], replace(old[1], verdict="fail", reason="hot")])) as found:
        assert dict(found.counts) == {"still_failing": 1, "new_failure": 1}
        assert (found.appeared, found.vanished) == ((), ())


def test_a_comparison_can_be_of_a_part(keep, judged):
    old = keep(judged({"heat n1": "pass", "fans n1": "pass", "heat n2": "pass"}))
    new = keep(judged({"heat n1": "fail", "fans n1": "fail", "heat n2": "fail"}))
    for wanted, count in [
        (OutcomeFilter(nodes=("n1",)), 2),
        (OutcomeFilter(checks=("*heat",)), 2),
        (OutcomeFilter(pools=("b200",)), 0),
    ]:
        with RunComparison(old, new, wanted) as found:
            assert found.counts["new_failure"] == count


def test_what_is_no_run_is_refused(keep, tmp_path):
    with pytest.raises(AssayError, match="is no run"):
        RunComparison(keep(), tmp_path / "nothing.sqlite")


PHASES = ("zap", "test")
OUTCOMES = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["n1", "n2", "n2/gpu0", "n3", "rack-r1"])),
    st.tuples(st.sampled_from(VERDICTS), st.sampled_from(["", "issue"]), st.booleans(), st.sampled_from(PHASES)),
    max_size=12,
)


@settings(max_examples=40)
@given(OUTCOMES, OUTCOMES, st.sets(st.sampled_from(["n1", "n2", "n3"])), st.sampled_from([(), ("zap",)]))
def test_it_is_what_going_through_every_pair_by_hand_gives(of, before, after, more, phases):
    """The rule of `classify_change` over dictionaries, against the same in SQL over two files."""
    old, new = (
        {(one.check, one.subject): one for one in (_outcome(of, *key, *said) for key, said in side.items())}
        for side in (before, after)
    )
    with TemporaryDirectory() as folder:
        files = [_kept(Path(folder) / name, side, more, phases) for name, side in (("old", old), ("new", new))]
        with RunComparison(*files) as found:
            told = Counter((one.kind, one.check, one.subject, one.decides) for one in found.changes())
            assert told == Counter(_by_hand(old, new, more, phases))
            assert found.both == len(old.keys() & new.keys())
            assert {one: found.counts[one] for one in CHANGE_KINDS} == {
                one: sum(1 for what in told if what[0] == one) for one in CHANGE_KINDS
            }
            assert found.worse == sum(1 for what in told if what[0] in WORSE_KINDS and what[3])


def _outcome(of, check, subject, verdict, known, observed, phase):
    return of(check, subject, verdict, known=known, observed=observed, phases=(phase,))


def _kept(path: Path, outcomes: dict[tuple[str, str], Outcome], more: set[str], phases: tuple[str, ...]) -> Path:
    nodes = {one.node for one in outcomes.values() if one.node} | more
    writer = OutcomeWriter(path, SuiteRun("r", "2026-11-21T00:00:00+00:00", phases, tuple(sorted(nodes))))
    for outcome in outcomes.values():
        writer(outcome)
    writer.set_about(ended="done")
    writer.close()
    return path


def _by_hand(old, new, more, phases):
    nodes = [{one.node for one in side.values() if one.node} | more for side in (old, new)]

    def asked(one: Outcome, side: int) -> bool:
        whose = one.node in nodes[side] if one.node else nodes[side] >= nodes[1 - side]
        return whose and (not phases or bool(set(one.phases) & set(phases)))

    for key in old.keys() | new.keys():
        was, now = old.get(key), new.get(key)
        unexcused = bool(was and now and not (now.known or now.observed) and (was.known or was.observed))
        there = asked(was, 1) if now is None else asked(now, 0)
        said = classify_change(was and was.verdict, now and now.verdict, asked=there, unexcused=unexcused)
        if said:
            one = now or was
            yield said, *key, one.verdict in BAD_VERDICTS and not one.known and not one.observed
