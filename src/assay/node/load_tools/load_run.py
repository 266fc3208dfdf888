"""Loads the node with one tool after the other, and reads what they say. Runs only on request.

The tools are the node's own, found in its PATH.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial

from assay.model.reading import ReadingTree, failed, parse_reading, value
from assay.node.load_tools.registry import LOAD_TOOLS, LoadTool
from assay.node.load_tools.tool_call import LoadOrder
from assay.node.probe.isolated_reader import gather_isolated
from assay.node.probe.node_access import NodeRoot, TimedQuestion


def run_load(root: NodeRoot, parts: Sequence[str], order: LoadOrder, at: str = "") -> ReadingTree:
    """Run `parts` in order, each for about the order's seconds, and return the `active` tree.

    Each part has `started_at`, counted from `at` (the caller's time, ISO 8601) where given: a node's clock may be off.
    """
    now = datetime.now(timezone.utc)  # noqa: UP017  # Python 3.10 has no datetime.UTC
    start, start_time = time.monotonic(), datetime.fromisoformat(at) if at else now
    tools: dict[str, LoadTool] = {str(name): tool for name, tool in LOAD_TOOLS.items()}
    tree: ReadingTree = {}
    for part in parts:
        started = start_time + timedelta(seconds=time.monotonic() - start)
        if order.relay:
            order.relay.tell(begins=part, at=started.isoformat())
        seconds = order.part_seconds.get(part, order.seconds)
        branch = _run_part(root, part, tools.get(part), replace(order, seconds=seconds))
        tree[part] = add_start(branch, started.isoformat())
        if order.relay:
            order.relay.tell(ends=part, branch=tree[part])
    return tree


def add_start(branch: ReadingTree, started_at: str) -> ReadingTree:
    """Return a part's branch with the time (ISO 8601) at which it began; a leaf has none."""
    return branch if parse_reading(branch) is not None else {"started_at": value(started_at), **branch}


def _run_part(root: NodeRoot, part: str, tool: LoadTool | None, order: LoadOrder) -> ReadingTree:
    if tool is None:
        return failed(f"no active part is called {part!r}; there are {', '.join(LOAD_TOOLS)}")
    limit_s = order.seconds + tool.beyond_s
    branch: ReadingTree = gather_isolated({part: TimedQuestion(limit_s, partial(tool.run, root, order))}, limit_s)[part]
    return branch
