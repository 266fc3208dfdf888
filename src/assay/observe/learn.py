"""Drafts a node spec from a good node's evidence, for a person to review. Pure: evidence in, YAML text out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from assay.observe.learned import entries
from assay.observe.learned_limits import limits
from assay.observe.seen import Entry, Seen

SCHEMA = "# yaml-language-server: $schema=../schemas/node-spec.json"


def draft(seen: Seen, wanted: Iterable[str] = ()) -> str:
    """Return the spec as YAML; `# review:` stands above everything that was not read, or is a guess.

    `wanted` are the limits that the suites read.
    """
    found = list(entries(seen))
    return "\n".join([*_heading(seen), *_head(seen, found), *_body(found), *_limits(limits(seen, wanted))]) + "\n"


def _heading(seen: Seen) -> Iterator[str]:
    yield SCHEMA
    yield f"# Drafted from what {seen.evidence.node} was at {seen.evidence.at:%Y-%m-%d %H:%M} UTC (evidence"
    yield f"# {seen.evidence.digest()[:12]}), for a person to review: every `# review:` wants a look."


def _head(seen: Seen, found: list[Entry]) -> Iterator[str]:
    """Yield what names the spec: the present one's, whose place the draft would take, or one after the product."""
    product = next((entry.value for entry in found if entry.key == "product" and entry.value), seen.evidence.node)
    name = seen.present.name if seen.present else re.sub(r"[^a-z0-9.-]+", "-", str(product).lower()).strip("-.")
    yield from _lines(Entry("kind", "NodeSpec"))
    takes = f"this would take the place of {name}: give it a name of its own if it is another kind of node"
    yield from _lines(Entry("name", name, (takes if seen.present else "the name is a guess, after the product",)))
    for key in ("description", "owner"):
        text = getattr(seen.present, key, "")
        yield from _lines(Entry(key, text)) if text else ()


def _body(found: Iterable[Entry]) -> Iterator[str]:
    for entry in found:
        yield from _lines(entry)


def _limits(found: Iterable[Entry]) -> Iterator[str]:
    lines = [line for entry in found for line in _lines(entry)]
    named = any(not line.startswith("#") for line in lines)
    yield "limits:" if named else "# limits:"
    yield from (f"  {line}" for line in lines)


def _lines(entry: Entry) -> Iterator[str]:
    """Yield an entry as YAML with its reviews above it; one without a value as a comment."""
    yield from (f"# review: {_on_one_line(review)}" for review in entry.reviews)
    yield from _yaml(entry.key, entry.value).split("\n") if entry.value is not None else (f"# {entry.key}:",)


def _on_one_line(text: str) -> str:
    """Return a text that can stand in a comment, whatever a device said."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _yaml(key: str, value: Any) -> str:
    """Return one entry: the innermost lists and mappings on a line each."""
    style = None if isinstance(value, dict | list) else False
    width = 1_000_000  # never fold a text
    return yaml.safe_dump(
        {key: value}, sort_keys=False, allow_unicode=True, width=width, default_flow_style=style
    ).rstrip("\n")
