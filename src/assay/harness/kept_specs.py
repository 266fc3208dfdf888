"""Specs of a kind of which a fleet has many and a check asks for one or none: each is unpacked when it is needed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any


class KeptSpecs(Mapping[str, Any]):
    """Specs by name, as `Fleet` has them."""

    def __init__(self, packed: Mapping[str, bytes]) -> None:
        self._packed = packed
        self._unpacked: dict[str, Any] = {}

    @staticmethod
    def packed(specs: Mapping[str, Any]) -> dict[str, bytes]:
        """Return what makes the same specs again."""
        return {name: pickle.dumps(spec, 5) for name, spec in specs.items()}

    def __getitem__(self, name: str) -> Any:
        if name not in self._unpacked:
            self._unpacked[name] = pickle.loads(self._packed[name])  # noqa: S301 — part of what `kept` has proved
        return self._unpacked[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)
