"""A run and a comparison as a comment on GitHub."""

from __future__ import annotations

from assay.tell.report.text_formats import MAX_COMMENT_CHARACTERS


def test_a_run_is_a_table_of_counts_and_a_list(told, day):
    lines = told("markdown", day[1])
    assert lines[0] == "### assay: 9 of 14 outcomes count against the fleet"
    assert lines[4:7] == [
        "| nodes | passed | failed | could not be judged |",
        "|---:|---:|---:|---:|",
        "| 5 | 3 | 10 | 1 |",
    ]
    assert len([line for line in lines if line.startswith("- ")]) == 11


def test_a_run_in_which_all_is_well_says_so(told, keep, judged):
    assert told("markdown", keep(judged({"heat n1": "pass"})))[0] == "### assay: passed"


def test_nobody_is_addressed_and_no_markup_comes_through(told, day):
    (line,) = [line for line in told("markdown", day[1]) if "trial" in line]
    assert line.endswith("x &lt;y&gt; &amp; @\u200bz \\x1b\\[1m")


def test_a_comparison_opens_what_is_worse_and_folds_the_rest(told, day):
    lines = told("markdown", *day)
    assert lines[0] == "### assay: 9 outcomes are worse"
    folded = [line for line in lines if line.startswith("<details")]
    assert folded == [
        "<details open><summary>newly failing: 10 outcomes, 2 of them known or on trial</summary>",
        "<details open><summary>no longer known: 1 outcome</summary>",
        "<details><summary>fixed: 1 outcome</summary>",
        "<details><summary>only in one of the runs</summary>",
    ]
    assert lines.count("</details>") == len(folded)


def test_what_is_too_long_for_a_comment_is_cut_and_that_is_said(told, keep, of):
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(600)]
    many = [of(word, "n1", "fail", f"{word} " * 160) for word in words]
    for files in ([keep(many)], [keep([of(word, "n1") for word in words]), keep(many)]):
        text = "\n".join(told("markdown", *files))
        assert 10_000 < len(text) <= MAX_COMMENT_CHARACTERS
        assert any(f"{600 - most} " in text for most in (200, 60, 20)), "how many more there are"
