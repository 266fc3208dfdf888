"""Finds which settings of the node spec each check reads: those that differ if the check fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from assay.decide.plan.setting_routes import list_settings_read
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.model.fleet import Fleet


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
                if settings := list_settings_read(check, reads.get(check.id)):
                    found[check.id] = settings
        return found

    def __getitem__(self, check: str) -> frozenset[str]:
        return self._found[check]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
