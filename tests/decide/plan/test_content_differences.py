"""The digest of a plan says what it decides and nothing else; two plans differ in words where their digests differ."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.decide.plan.inputs import NO_FACTS, FleetFacts, MedianDuration
from assay.decide.plan.output_formats import format_plan_markdown
from assay.decide.plan.review import PlanContent, list_content_differences, parse_plan_content
from assay.model.errors import AssayError

WORDS = st.sampled_from(["bmc 1 → 2", "bmc 1 → 3", "bios 4 → 5", "pool a → b"])
NAMES = st.sampled_from(["n1", "n2", "n3", "n4"])
SEVERAL = st.lists(WORDS, max_size=3).map(tuple)
CONTENTS = st.builds(
    PlanContent,
    st.dictionaries(NAMES, SEVERAL, max_size=4),
    st.lists(NAMES, unique=True, max_size=4).map(lambda names: tuple((name,) for name in names)),
    SEVERAL,
    SEVERAL,
    st.none() | st.dictionaries(NAMES, st.sampled_from(["in zap", "held by ann: why"]), max_size=4),
)


@given(CONTENTS, CONTENTS)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_contents_differ_in_words_where_their_digests_differ(one, other) -> None:
    assert bool(list_content_differences(one, other)) is (one.digest != other.digest)
    assert list_content_differences(one, parse_plan_content(one.as_json())) == ()


@given(CONTENTS, st.randoms())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_the_order_of_nodes_and_changes_is_not_in_the_digest(one, chance: random.Random) -> None:
    names = list(one.nodes)
    chance.shuffle(names)
    nodes = {name: tuple(chance.sample(one.nodes[name], len(one.nodes[name]))) for name in names}
    shuffled = replace(one, nodes=nodes, changes=one.changes[::-1], risks=one.risks[::-1])
    assert shuffled.digest == one.digest


BASE = PlanContent({"n1": ("bmc 1 → 2",), "n2": ("bmc 1 → 2",)}, (("n1",), ("n2",)), ("limits.x: 1 → 2",), ("r: why",))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (replace(BASE, nodes={**BASE.nodes, "n3": ("bmc 1 → 2",)}), ["n3: not in the reviewed plan; now bmc 1 → 2"]),
        (replace(BASE, nodes={"n1": ("bmc 1 → 2",)}), ["n2: no longer in the plan; reviewed was bmc 1 → 2"]),
        (
            replace(BASE, nodes=dict.fromkeys(("n1", "n2"), ("bmc 0 → 2",))),
            ["2 nodes (n1, n2): reviewed was bmc 1 → 2; now bmc 0 → 2"],
        ),
        (replace(BASE, waves=(("n2",), ("n1",))), ["waves: 2 reviewed, 2 now; another wave for 2 nodes (n1, n2)"]),
        (replace(BASE, risks=()), ["risk no longer in the plan: r: why"]),
        (replace(BASE, changes=("y: 1 → 3", *BASE.changes)), ["change not in the reviewed plan: y: 1 → 3"]),
    ],
)  # fmt: skip
def test_each_difference_has_its_line(now, said) -> None:
    assert list(list_content_differences(BASE, now)) == said


@pytest.mark.parametrize("plain", [None, [], {}, {"version": 1}, {"version": 9}, {"version": 1, "nodes": [{}]}])
def test_a_stored_plan_that_is_none_is_refused(plain) -> None:
    with pytest.raises(AssayError, match="plan"):
        parse_plan_content(plain)


def test_the_facts_of_the_fleet_and_that_they_are_missing_move_the_digest(repository, out_of_service) -> None:
    repository.firmware("01.05.11", "01.05.12")
    missing, serving, other = (
        repository.plan(facts) for facts in (NO_FACTS, FleetFacts(), out_of_service("n0003", "n0004"))
    )
    assert len({plan.content.digest for plan in (missing, serving, other)}) == 3
    assert other.content.facts["n0003"] == "in draining"
    assert (missing.content.facts, missing.work.schedule.waves, missing.work.schedule.hours) == (None, (), 0)
    text = format_plan_markdown(missing)
    assert "the facts of the fleet are missing (they were not asked for): this plan has no waves and no hours" in text
    assert not re.search(r"\| wave |\d h\b|\d min\b| days\b|in onboard", text)
    assert list_content_differences(missing.content, other.content)[-1] == (
        "the fleet's facts: reviewed missing, now known"
    )
    assert list_content_differences(serving.content, other.content)[-1] == (
        "2 nodes (n0003, n0004): reviewed was in a wave; now in draining"
    )


def test_neither_the_day_nor_lines_of_files_move_the_digest(repository) -> None:
    repository.firmware("01.05.11", "01.05.12").policy("pool_percent: 25", "pool_percent: 30")
    repository.edit("specs/gates/default.yaml", "success_percent: 99", "success_percent: 98")
    bare = repository.plan()
    later = FleetFacts(stays={"test": MedianDuration(99, 3)}, now=datetime(2026, 12, 1, tzinfo=UTC))
    assert repository.plan(later).work.schedule != bare.work.schedule, "hours are no part of it"
    assert repository.plan(later).content == bare.content
    assert "leaves service through zap" in bare.content.nodes["n0001"]
    repository.edit("specs/firmware/hgx-h100-2026-10.yaml", "kind:", "# a comment\n# of two lines\nkind:", 1)
    repository.edit("specs/lifecycle/default.yaml", "kind:", "# a comment\nkind:", 1)
    repository.edit("specs/gates/default.yaml", "kind:", "# a comment\nkind:", 1)
    assert repository.plan().content == bare.content
    base, head = repository.git("rev-parse", "HEAD"), repository.commit()
    repository.git("checkout", "-q", "HEAD~1")
    assert repository.plan(base=base).content.digest != bare.content.digest, "nothing changes there"
    repository.git("checkout", "-q", head)
    assert repository.plan(base=base).content == bare.content, "a commit and its folder are alike"


def test_what_a_merge_decides_moves_the_digest(repository) -> None:
    digests = [repository.firmware("01.05.11", "01.05.12").plan().content.digest]
    digests.append(repository.policy("pool_percent: 25", "pool_percent: 10").plan().content.digest)
    gates = repository.edit("specs/gates/default.yaml", "success_percent: 99", "success_percent: 98")
    digests.append(gates.plan().content.digest)
    digests.append(repository.remove("n0016").plan().content.digest)
    assert len(set(digests)) == len(digests)
