"""Which formats there are, each a module of this package: how it tells a run, and how it tells two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from assay.harness.results import as_github, as_json, as_jsonl, as_junit, as_markdown, as_nagios, as_text
from assay.harness.results.differences import Differences
from assay.harness.results.result import Result

Form = Literal["text", "json", "jsonl", "junit", "markdown", "github", "nagios"]


@dataclass(frozen=True)
class Format:
    """What makes lines of a run, and of a comparison where the format has a word for it."""

    run: Callable[[Result], Iterator[str]]
    comparison: Callable[[Differences], Iterator[str]] | None = None


FORMATS: dict[Form, Format] = {
    "text": Format(as_text.text, as_text.differences),
    "json": Format(as_json.json_document, as_json.differences),
    "jsonl": Format(as_jsonl.jsonl),
    "junit": Format(as_junit.junit),
    "markdown": Format(as_markdown.markdown, as_markdown.differences),
    "github": Format(as_github.github, as_github.differences),
    "nagios": Format(as_nagios.nagios, as_nagios.differences),
}
