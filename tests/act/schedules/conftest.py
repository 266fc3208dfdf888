"""The example fleet with a ledger, a clock that is moved by hand, and nothing done yet."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.act.loop.context import ControllerContext
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.observe.evidence_store import EvidenceStore
from tests.act.schedules.by_hand import Hands
from tests.support.lab_room import Room, lab_room
from tests.support.places import ROOT


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    root = tmp_path_factory.mktemp("fleet")
    for part in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / part, root / part)
    return load_fleet(root)


@pytest.fixture
def desk(fleet: Fleet, tmp_path: Path) -> ControllerContext:
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    return ControllerContext(fleet, ledger, store, Hands(), tmp_path, tmp_path / "reports")


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Return a lab that is up, with the suites beside it."""
    root = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "suites", root / "suites")
    with lab_room(root, rate=60.0) as room:
        yield room
