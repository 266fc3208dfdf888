"""Checks names that a person typed against the known ones. An error suggests the names that are near."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from assay.model.errors import AssayError
from assay.model.text.lists import format_list

if TYPE_CHECKING:
    from assay.model.fleet import Fleet


def require_known(names: Sequence[str], known: Iterable[str], noun: str) -> None:
    """Raise AssayError for the first of `names` that is not in `known`; `noun` is its kind, such as "pool"."""
    existing = dict.fromkeys(known)
    for name in names:
        if name not in existing:
            raise AssayError(f"there is no {noun} {name}", fix=suggest_names(name, existing.keys()))


def suggest_names(name: str, known: Collection[str], otherwise: str = "") -> str:
    """Return a question with up to three known names near `name`; if none is near, `otherwise` or the known names."""
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(sorted(near))}?"
    return otherwise or (f"known: {format_list(sorted(known))}" if known else "")


def select_nodes(fleet: Fleet, names: Sequence[str], pools: Sequence[str]) -> list[str]:
    """Return the selected nodes in the order of the inventory: those of `names` that are in `pools`; empty means all.

    Raises AssayError for an unknown node or pool, and if no node is left.
    """
    require_known(pools, (node.pool for node in fleet.nodes.values()), "pool")
    require_known(names, fleet.nodes, "node")
    wanted = set(names) or fleet.nodes.keys()
    selected = [node.name for node in fleet.nodes.values() if node.name in wanted and (not pools or node.pool in pools)]
    if not selected:
        reason = "none of these nodes is in these pools" if fleet.nodes else "the inventory is empty"
        raise AssayError(f"no node is selected: {reason}", where=str(fleet.root / "inventory"))
    return selected
