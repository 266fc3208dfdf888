"""A real Prometheus, Alertmanager and node_exporter on this machine, beside a site that listens; started once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.observe.transports.real_monitoring import PROGRAMS, Monitored


@pytest.fixture(scope="session")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; as root: sh tools/system-packages")
    found = Monitored(tmp_path_factory.mktemp("monitored"))
    try:
        found.start()
        yield found
    finally:
        found.end()
