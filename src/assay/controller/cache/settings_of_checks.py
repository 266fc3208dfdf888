"""Finds which settings of the node spec each check reads: those that differ if the check fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from assay.fleet.spec_values_read_by_checks import JudgingHashes, list_spec_paths
from assay.model.configuration.correction_rules import find_setting
from assay.model.fleet import Fleet

PART_LISTS = ("gpus.pci", "hcas", "nics", "psus.count", "nvme.count")
"""What a check reads only to know its parts."""


class SettingsOfChecks(Mapping[str, frozenset[str]]):
    """The settings by check, as paths of `SETTING_ROLES`. The suites are read only when somebody asks.

    A check that also reads something else than settings is left out: nobody knows what differs if it fails.
    """

    def __init__(self, fleet: Fleet, hashes: Callable[[], JudgingHashes]) -> None:
        self._fleet, self._hashes = fleet, hashes

    @cached_property
    def _found(self) -> dict[str, frozenset[str]]:
        found, reads = dict[str, frozenset[str]](), self._hashes().reads
        for catalog in self._fleet.check_catalogs.values():
            for check in catalog.checks:
                paths = list_spec_paths(check, reads[check.id]) if check.id in reads else []
                settings = frozenset(find_setting(path) for path in paths if path not in PART_LISTS)
                if settings and "" not in settings and not reads[check.id].limits:
                    found[check.id] = settings
        return found

    def __getitem__(self, check: str) -> frozenset[str]:
        return self._found[check]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
