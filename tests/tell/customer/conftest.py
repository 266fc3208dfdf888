"""The fleet on paper, whose customers are told."""

from __future__ import annotations

from tests.decide.conftest import catalog, new_paper, paper, policy, profiles

__all__ = ["catalog", "new_paper", "paper", "policy", "profiles"]
