"""The formats of results by name, each with its functions for a run and for a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from assay.tell.report import csv_format, github_format, json_format, junit_format, markdown_format, text_format
from assay.validate.results.comparison_summary import RunDifferences
from assay.validate.results.run_summary import RunSummary

FormatName = Literal["text", "json", "jsonl", "csv", "junit", "junit-all", "markdown", "github"]


@dataclass(frozen=True)
class ResultFormat:
    """Functions that yield the lines of a run, and of a comparison where the format supports that."""

    run: Callable[[RunSummary], Iterator[str]]
    comparison: Callable[[RunDifferences], Iterator[str]] | None = None


RESULT_FORMATS: dict[FormatName, ResultFormat] = {
    "text": ResultFormat(text_format.format_text, text_format.format_text_comparison),
    "json": ResultFormat(json_format.format_json, json_format.format_json_comparison),
    "jsonl": ResultFormat(json_format.format_jsonl),
    "csv": ResultFormat(csv_format.format_csv_outcomes, csv_format.format_csv_comparison),
    "junit": ResultFormat(junit_format.format_junit),
    "junit-all": ResultFormat(junit_format.format_junit_all),
    "markdown": ResultFormat(markdown_format.format_markdown, markdown_format.format_markdown_comparison),
    "github": ResultFormat(github_format.format_github, github_format.format_github_comparison),
}
