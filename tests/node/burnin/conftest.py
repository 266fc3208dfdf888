"""The burn-in that assay ships."""

from __future__ import annotations

from tests.validate.active.conftest import day

__all__ = ["day"]
