"""Lays a warning to the item that gave it, where pytest catches those of several neighbours together."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Any

import pytest


class Warned:
    """A context around items that are judged in one call of the protocol; `item` is the one that is judged now.

    `any` says that there was a warning. pytest would show the same one once only of all that it catches together, so
    the items after it need a call of their own.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._hook = config.hook if config.pluginmanager.has_plugin("warnings") else None
        self.item: pytest.Item | None = None
        self.any = False

    def __enter__(self) -> Warned:
        self._was = warnings.showwarning
        if self._hook is not None:
            warnings.showwarning = self._hear
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        warnings.showwarning = self._was

    def _hear(self, *about: Any, **more: Any) -> None:
        self.any = True
        told = {"warning_message": warnings.WarningMessage(*about, **more), "when": "runtest", "location": None}
        nodeid = self.item.nodeid if self.item is not None else ""
        assert self._hook is not None
        self._hook.pytest_warning_recorded.call_historic(kwargs={**told, "nodeid": nodeid})
