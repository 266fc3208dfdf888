"""A site: the example fleet in a folder of its own, what listens there, and a node whose kernel says what we want."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.site_of_agents import Site


@pytest.fixture
def site(tmp_path: Path):
    """Yield a site of its own, some of whose nodes have agents; everything that was started is ended."""
    site = Site(tmp_path)
    yield site
    site.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    """Yield a site that listens; each test that shares it has a node of its own."""
    site = Site(tmp_path_factory.mktemp("site"))
    site.serve()
    yield site
    site.end()
