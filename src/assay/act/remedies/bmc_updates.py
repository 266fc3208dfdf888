"""The updates of one BMC, as far as the firmware work needs them; `redfish_update_service` speaks Redfish for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assay.model.specs.firmware_bundle import FirmwareComponent, FirmwareReset


@dataclass(frozen=True, slots=True)
class FirmwareUpdateStatus:
    """One update of a BMC: running, completed or failed, and whether the reset that it needs has come since.

    `lost`: the BMC named no task, or no longer knows it. Nobody says whether the image was written.
    """

    id: str
    running: bool
    completed: bool
    reset_since: bool = False
    message: str = ""
    lost: bool = False


class FirmwareUpdater(Protocol):
    """One BMC, as far as updates need it. Every method may raise AssayError."""

    def read_versions(self) -> Mapping[str, str]:
        """Return version by inventory id."""

    def read_pending_versions(self) -> Mapping[str, str]:
        """Return the version that waits for a reset by inventory id; empty if the BMC does not list such versions."""

    def read_bmc_restart(self) -> str | None:
        """Return when the BMC itself last restarted, "" if it does not say, None if that cannot be read."""

    def find_update(self, component: FirmwareComponent) -> FirmwareUpdateStatus | None:
        """Return the newest update of a component that the BMC remembers."""

    def read_update(self, ident: str) -> FirmwareUpdateStatus:
        """Return one update by its id."""

    def push(self, component: FirmwareComponent, image: Path) -> str:
        """Upload an image. Return the id of its update."""

    def restart(self, what: FirmwareReset) -> None:
        """Restart the BMC or the host, or cut its power."""


BmcConnector = Callable[[], AbstractContextManager[FirmwareUpdater]]
