"""Evidence as a check sees it: `gpu.pcie.width` is the number, or the check ends there and then with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.harness.silence import Silence, no_such
from assay.harness.told import told
from assay.harness.trial import Trial
from assay.model.reading import as_reading

PLAIN = frozenset({int, float, str, bool, list})
"""Types of values as JSON has them that a leaf may hold and that are no branch."""


class View:
    """A branch of one document, by attribute or by key; iterating gives its keys.

    A leaf that holds a value reads as that plain value. Any other leaf raises Silence, which the trial remembers;
    so does a branch that is taken for a value (`assert gpu.pcie`).
    """

    __slots__ = ("_document", "_known", "_path", "_trial")

    def __init__(
        self, trial: Trial, document: str, path: tuple[str, ...], known: Mapping[str, Any] | None = None
    ) -> None:
        """`known` is the branch itself, where the way to it has been walked already."""
        self._trial, self._document, self._path, self._known = trial, document, path, known

    def __getattr__(self, name: str) -> Any:
        """Return what is at `name`. Raises Silence for no value, Unjudgeable for no such name."""
        if name.startswith("__"):
            raise AttributeError(name)  # Python asks every object for these
        return self[name]

    def __getitem__(self, key: str) -> Any:
        branch = self._branch() if self._known is None else self._known
        if key not in branch:
            raise self._unknown(key, branch)
        tree = branch[key]
        if type(tree) is dict:  # told apart without a Reading where that is easy, which is nearly always
            if len(tree) != 1:
                return View(self._trial, self._document, (*self._path, key), tree)
            if type(tree.get("value")) in PLAIN:
                return told(tree["value"], (self._document, *self._path, key))
        return self._read(tree, (*self._path, key))

    def __contains__(self, key: object) -> bool:
        return key in self._branch()

    def __iter__(self) -> Iterator[str]:
        return iter(self._branch())

    def __len__(self) -> int:
        return len(self._branch())

    def __bool__(self) -> bool:
        raise self._no_value()

    def __eq__(self, other: object) -> bool:
        raise self._no_value()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{'.'.join((self._document, *self._path))}>"

    def _branch(self) -> Mapping[str, Any]:
        """Return the branch that this view stands for. Raises Silence where a leaf stands in its place."""
        if self._known is None:
            self._known = self._walked()
        return self._known

    def _walked(self) -> Mapping[str, Any]:
        document = self._trial.look(self._document)
        walked = document.walked.get(self._path)
        if walked is None:
            walked = document.walked[self._path] = self._walk(document.evidence.channels)
        return walked

    def _walk(self, tree: Any) -> Mapping[str, Any]:
        for depth, step in enumerate(self._path):
            if step not in tree:
                raise self._silent("absent", self._path[: depth + 1], "is not in the evidence")
            tree = tree[step]
            if type(tree) is dict and len(tree) != 1:
                continue
            reading = as_reading(tree)
            if reading is not None and reading.kind != "value":
                raise self._silent(reading.kind, self._path[: depth + 1], reading.reason)
            tree = reading.value if reading is not None else tree
            if not isinstance(tree, dict | Mapping):  # dict first: it is one nearly always, and is known faster
                raise self._silent("failed", self._path[: depth + 1], f"is {tree!r} and not a branch")
        branch: Mapping[str, Any] = tree
        return branch

    def _read(self, tree: Any, path: tuple[str, ...]) -> Any:
        reading = as_reading(tree)
        if reading is None and isinstance(tree, dict | Mapping):
            return View(self._trial, self._document, path, tree)
        if reading is None or (reading.kind == "value" and reading.value is None):
            raise self._silent("failed", path, f"is no reading: {tree!r}")
        if reading.kind != "value":
            raise self._silent(reading.kind, path, reading.reason)
        if isinstance(reading.value, dict | Mapping):
            return View(self._trial, self._document, path, reading.value)
        return told(reading.value, (self._document, *path))

    def _unknown(self, key: str, branch: Mapping[str, Any]) -> Exception:
        self._silent("failed", (*self._path, key), "is not in the evidence")
        return no_such(key, ".".join((self._document, *self._path)), branch)

    def _no_value(self) -> Silence:
        """Return the complaint about a branch that a check takes for a value; it must not count as true."""
        return self._silent("failed", self._path, "is a branch of the evidence and no value")

    def _silent(self, kind: str, path: tuple[str, ...], reason: str) -> Silence:
        return self._trial.silent(Silence(kind, ".".join((self._document, *path)), reason))
