"""What is known of an area so far: leaves and branches by path, put together to one tree at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.probe.files import Tree

Path = tuple[str, ...]


class Answers:
    """Leaves by path, and the names below each branch, also of those names that nobody could be asked about yet.

    A leaf may stand where a branch is known as well: it is then the answer of all below that has none of its own.
    """

    def __init__(self) -> None:
        self.leaves: dict[Path, Tree] = {}
        self.names: dict[Path, Sequence[str]] = {}

    def settled(self, path: Path) -> bool:
        """Say whether nothing is left to be asked at or below `path`."""
        if path in self.leaves:
            return True
        return path in self.names and all(self.settled((*path, name)) for name in self.names[path])

    def tree(self, otherwise: Tree, path: Path = ()) -> Tree:
        """Return the tree at `path`; `otherwise` is the leaf of what was not asked."""
        leaf = self.leaves.get(path, otherwise)
        if path in self.names:
            return {name: self.tree(leaf, (*path, name)) for name in self.names[path]}
        return leaf

    def add(self, path: Path, kind: str, content: Any) -> None:
        """Take a record of a journal: the `names` below a branch, or a `leaf`."""
        (self.names if kind == "names" else self.leaves)[path] = content
