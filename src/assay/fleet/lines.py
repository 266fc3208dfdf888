"""Where the values of specs are written: a fleet has thousands, and a command asks for those of a spec or two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.fleet.specs import SpecFile

Key = tuple[str, str]


class Lines(Mapping[Key, str]):
    """`file:line` by spec (`Kind/name`) and dotted path, as `Fleet.lines` has them, made by the spec when asked for."""

    def __init__(self, files: Mapping[str, SpecFile]) -> None:
        self._files = files
        self._of: dict[str, dict[str, str]] = {}

    def __getitem__(self, key: Key) -> str:
        spec, path = key
        return self._lines(spec)[path]

    def __iter__(self) -> Iterator[Key]:
        return ((spec, path) for spec in self._files for path in self._lines(spec))

    def __len__(self) -> int:
        return sum(len(self._lines(spec)) for spec in self._files)

    def _lines(self, spec: str) -> dict[str, str]:
        if spec not in self._of:
            file = self._files.get(spec)
            self._of[spec] = dict(file.lines()) if file else {}
        return self._of[spec]
