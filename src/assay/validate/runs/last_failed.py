"""The items that `--lf` asks for, known before any item is made: pytest itself first makes all of a module's items."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from assay.validate.runs.command_line_selection import CommandLineId, RequestedIds


def find_last_failed(config: pytest.Config, nodes: Collection[str]) -> Mapping[Path, RequestedIds]:
    """Return the failures of the last session on these nodes, by module; a module that is left out is not narrowed.

    Empty without --lf, and where pytest would run more than these: with -k or -m, or if none is on these nodes.
    """
    if not config.getoption("lf", default=False) or config.option.keyword or config.option.markexpr:
        return {}
    known = config.cache.get("cache/lastfailed", {}) if config.cache is not None else {}
    failed = [CommandLineId.parse(text, config.rootpath) for text in known]
    undecided = {one.path for one in failed if len(one.names) != 1 or one.subject is None}
    found: dict[Path, dict[str, frozenset[str] | None]] = {}
    for one in failed:
        if one.path not in undecided and one.subject is not None and _is_on(one.subject, nodes):
            subjects = found.setdefault(one.path, {})
            subjects[one.names[0]] = (subjects.get(one.names[0]) or frozenset()) | {one.subject}
    return found


def _is_on(subject: str, nodes: Collection[str]) -> bool:
    """Return whether a subject is on one of these nodes, or is a rack or a fabric."""
    scope, _, rest = subject.partition("/")
    name = rest.partition("/")[0]
    return name in nodes or scope == "fabric" or name.startswith("rack-")
