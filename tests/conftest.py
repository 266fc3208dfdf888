"""The longest files first, so that no worker is left alone with one of them at the end."""

from __future__ import annotations

import pytest

LONGEST = ("stories", "secrets", "controller")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(room) if (room := item.path.parent.name) in LONGEST else len(LONGEST))
