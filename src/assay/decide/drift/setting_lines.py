"""Finds the line on which a spec says a value now. A reason names the line of the time when the check ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from assay.model.fleet import Fleet
from assay.model.specs.firmware_bundle import FirmwareBundle

_NAMED_BY_KEY = ("bios.", "host.sysctls.", "limits.")
"""Mappings of a node spec whose keys are what differs, dots included."""
_INSIDE_A_VALUE = ("value", "unit", "source")


class SettingLines:
    """The lines of settings and firmware versions by what checks call them, for each node spec."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._paths: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for (document, path), where in fleet.lines.items():
            if document.startswith(("NodeSpec/", "FirmwareBundle/")):
                self._paths[document].append((path, where))
        self._known: dict[str, dict[str, str]] = {}

    def find(self, spec: str, what: str, said: str) -> str:
        """Return where `what` is declared now, if that is in the file that a reason `said`; else what it said."""
        if spec not in self._known:
            self._known[spec] = dict(reversed(list(self._list_names(spec))))
        now = self._known[spec].get(what, "")
        return now if now.rpartition(":")[0] == said.rpartition(":")[0] else said

    def _list_names(self, spec: str) -> Iterator[tuple[str, str]]:
        """Yield name and line, better names first."""
        declared = self._fleet.node_specs[spec]
        for path, where in self._paths[f"NodeSpec/{spec}"]:
            for mapping in _NAMED_BY_KEY:
                if path.startswith(mapping):
                    yield path.removeprefix(mapping), where
            yield path.replace(".", "_"), where
        for path, where in self._paths[f"NodeSpec/{spec}"]:
            name = path.rpartition(".")[2]
            if not name.isdigit() and name not in _INSIDE_A_VALUE:
                yield name, where
        if bundle := self._fleet.bundles.get(declared.firmware):
            yield from self._list_components(bundle)

    def _list_components(self, bundle: FirmwareBundle) -> Iterator[tuple[str, str]]:
        lines = dict(self._paths[f"FirmwareBundle/{bundle.name}"])
        for number, component in enumerate(bundle.components):
            where = lines.get(f"components.{number}.version", "")
            yield from ((name, where) for name in (*component.inventory, component.name))
