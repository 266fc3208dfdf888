"""Walks over evidence trees: lists every leaf with its path, and finds the branches that a channel did not answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.model.reading import EvidenceReading, parse_reading


def iterate_leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], EvidenceReading]]:
    """Yield (path, reading) for every leaf of `tree`, in order. Data that is no reading counts as a value."""
    reading = parse_reading(tree)
    if reading is not None:
        yield path, reading
    elif isinstance(tree, Mapping) and tree:
        for step, branch in tree.items():
            yield from iterate_leaves(branch, (*path, step))
    else:
        yield path, EvidenceReading("value", value=tree)


def find_unanswered_branches(channel: Any) -> dict[str, str]:
    """Return the failed branches of a channel, name → reason; the key is "" where the whole channel failed.

    Only the channel and its first branches count: a lost GPU deep inside is an answer about the node.
    """
    whole = parse_reading(channel)
    if whole is not None:
        return {"": whole.reason} if whole.kind == "failed" else {}
    if not isinstance(channel, Mapping):
        return {"": f"it is {channel!r:.40} and holds no readings"}
    failures: dict[str, str] = {}
    for name, branch in channel.items():
        reading = parse_reading(branch)
        if reading is not None and reading.kind == "failed":
            failures[name] = reading.reason
    return failures
