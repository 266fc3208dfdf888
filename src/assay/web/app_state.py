"""What every route works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.controller.context import ControllerContext
from assay.web.batch_intake import BatchIntake
from assay.web.tokens_and_rate_limits import AgentTokens


@dataclass(frozen=True)
class AppState:
    """The fleet's desk, who may speak for which node, and where what they say is taken in.

    `tell` is told in one line what people should know of.
    """

    desk: ControllerContext
    tokens: AgentTokens
    intake: BatchIntake
    tell: Callable[[str], None] = lambda _: None
