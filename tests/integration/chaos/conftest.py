"""Where the helpers of these tests lie, and how a story of chaos begins."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.chaos.chaos import Chaos
from tests.support.real_postgres import Postgres, served

SEED = int(os.environ.get("ASSAY_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A PostgreSQL that one test may end and start."""
    yield from served()


@pytest.fixture
def chaos(tmp_path: Path) -> Callable[..., Chaos]:
    def make(place: str | Path, **of: object) -> Chaos:
        print(f"ASSAY_CHAOS_SEED={SEED}")  # noqa: T201 — whoever sees it fail wants it
        return Chaos(tmp_path, str(place), seed=SEED, **of)  # type: ignore[arg-type]

    return make
