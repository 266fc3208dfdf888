"""The three forms of a plan: short for people, whole for machines, and fit for a pull request."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from assay.decide.plan.cable_moves import CablingJob
from assay.decide.plan.output_formats import (
    COMMENT_MARKER,
    MAX_CHARACTERS,
    MAX_LINES,
    format_plan_json,
    format_plan_markdown,
    format_plan_text,
)
from assay.decide.plan.refusals import PlanRefusal
from assay.decide.plan.sections import format_headline, format_hours, format_sections
from assay.model.text.lists import fold_names, format_list, format_nodes


@pytest.fixture
def flashed(repository):
    """A plan in which one pool gets another firmware."""
    return repository.firmware("01.05.11", "01.05.12").plan()


COMMENT = """\
<!-- assay plan -->
### assay plan: inside the limits

`HEAD` → `the working tree`: 1 limit, checks to run again on 20 nodes, 1 other change.

Assay-Plan: sha256:DIGEST

<details><summary>Limits (1)</summary>

- gpu_temperature of hgx-h100: 85 °C → 84 °C (specs/nodes/hgx-h100.yaml:LINE), read by test_gpu_temperature

</details>

<details><summary>Checks to run again (1)</summary>

- 20 nodes (n0001..n0020): test 1, production 1 (because of limit gpu_temperature 85 °C → 84 °C)

</details>

<details><summary>Also changed (1)</summary>

- NodeSpec hgx-h100-roce: limits.gpu_temperature.value: 85 → 84 (specs/nodes/hgx-h100.yaml:LINE); touches no pool

</details>"""


def test_a_small_change_is_a_small_comment(repository) -> None:
    made = format_plan_markdown(repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 84").plan())
    assert re.sub(r"yaml:\d+", "yaml:LINE", re.sub(r"sha256:[0-9a-f]{64}", "sha256:DIGEST", made)) == COMMENT


def test_a_comment_is_found_again_by_its_first_line(flashed) -> None:
    assert format_plan_markdown(flashed).splitlines()[0] == COMMENT_MARKER


def test_a_comment_that_changes_nothing_has_no_sections(repository) -> None:
    assert format_plan_markdown(repository.plan()).splitlines()[1:] == [
        "### assay plan: nothing changes",
        "",
        "`HEAD` → `the working tree`: nothing changes.",
    ]


def test_a_refusal_stands_before_everything_else(flashed) -> None:
    refused = replace(
        flashed, refused=(PlanRefusal("limits.pool_percent", "specs/lifecycle/default.yaml:160", "too many"),)
    )
    text = format_plan_markdown(refused)
    assert "### assay plan: refused, 1 of the limits would be broken" in text
    assert text.index("limits.pool_percent (specs/lifecycle/default.yaml:160): too many") < text.index("| wave |")
    assert format_sections(refused)[0].title == "Refused"


def test_waves_are_a_table_with_a_sum(flashed) -> None:
    rows = [line for line in format_plan_markdown(flashed).splitlines() if line.startswith("|")]
    assert rows[2].startswith("| 0, canary | 1 | n0003 |")
    assert rows[-1].startswith("| all | 14 |")


def test_a_comment_never_grows_beyond_what_github_takes(flashed) -> None:
    jobs = tuple(
        CablingJob("compute", "move", (f"move plug {number}" + " far" * 60,), ("n1",)) for number in range(3000)
    )
    text = format_plan_markdown(replace(flashed, cables=jobs))
    assert len(text) <= MAX_CHARACTERS
    assert "more" in text
    assert text.count("<details>") == text.count("</details>")


def test_what_people_wrote_is_shown_and_is_no_markup(flashed) -> None:
    told = replace(flashed, notes=("held by @ann: <img src=x> | *now* `rm`",))
    assert "held by @\u200bann: &lt;img src=x&gt; \\| \\*now\\* \\`rm\\`" in format_plan_markdown(told)


def test_json_is_whole_and_stable(flashed) -> None:
    read = json.loads(format_plan_json(flashed))
    assert {
        "base", "head", "changes", "refused", "nodes", "firmware", "configuration", "limits", "reruns", "follows",
        "cables", "policy", "faults", "work", "backtest", "notes",
    } <= set(read)  # fmt: skip
    assert read["firmware"][0] | {"nodes": []} == {
        "component": "bmc", "old": "01.05.11", "new": "01.05.12", "reset": "bmc", "order": 10, "nodes": [],
    }  # fmt: skip
    assert set(read["work"]["waves"][0]) == {"number", "canary", "nodes", "pools", "hours", "node_hours"}
    assert set(read["work"]["ways"][0]["stages"][0]) == {"state", "hours", "basis", "sources"}


def test_json_says_of_every_refusal_which_limit_where_and_why(flashed) -> None:
    refused = (PlanRefusal("limits.pool_percent", "specs/lifecycle/default.yaml:160", "too many"),)
    (one,) = json.loads(format_plan_json(replace(flashed, refused=refused)))["refused"]
    assert one == {"limit": "limits.pool_percent", "where": "specs/lifecycle/default.yaml:160", "why": "too many"}


def test_long_sections_of_text_are_cut_and_say_so(flashed) -> None:
    told = format_plan_text(replace(flashed, notes=tuple(f"note {number}" for number in range(MAX_LINES + 7))))
    assert f"note {MAX_LINES - 1}\n" in told
    assert f"note {MAX_LINES}\n" not in told
    assert "and 7 more" in told


def test_the_headline_says_what_it_costs(flashed) -> None:
    assert format_headline(flashed) == (
        "firmware on 20 nodes, checks to run again on 20 nodes, 6 waves in 6.71 days, 376 node-hours out of service"
    )


def test_names_that_follow_each_other_are_folded() -> None:
    assert fold_names(["n0003", "n0001", "n0002", "n0009", "m1", "n0010"]) == ["m1", "n0001..n0003", "n0009", "n0010"]
    assert fold_names(["n9", "n10", "rack-a"]) == ["n10", "n9", "rack-a"]
    assert format_nodes(["n1"]) == "n1"


def test_lists_and_hours_are_for_people() -> None:
    assert format_list(list("abcde"), 3) == "a, b, and 3 more"
    assert [format_hours(0.5), format_hours(6), format_hours(84)] == ["30 min", "6 h", "3.5 days"]
