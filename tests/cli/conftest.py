"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from tests.support.person import ann  # noqa: F401 — a fixture


@pytest.fixture
def ask(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Ask `assay` about the fixture `fleet` of a test's module, as ann; return what it prints."""
    monkeypatch.setenv("ASSAY_WHO", "ann")

    def asked(*words: str) -> str:
        result = CliRunner().invoke(app, [*words, "--fleet", str(fleet)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return asked
