"""The state that all routes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.controller.context import ControllerContext
from assay.controller.fleet_reload import CurrentContext
from assay.web.batch_writer import BatchWriter
from assay.web.tokens_and_rate_limits import AgentTokens


@dataclass(frozen=True)
class AppState:
    """The current context, the agents' tokens, and the intake of their batches. `report` shows a line to people."""

    current: CurrentContext
    tokens: AgentTokens
    intake: BatchWriter
    report: Callable[[str], None] = lambda _: None

    @property
    def context(self) -> ControllerContext:
        """The controller's context, with the fleet as it was last read."""
        return self.current.context
