"""What every route works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.controller.desk import Desk
from assay.web.intake import Intake
from assay.web.tokens import Tokens


@dataclass(frozen=True)
class Room:
    """The fleet's desk, who may speak for which node, and where what they say is taken in.

    `tell` is told in one line what people should know of.
    """

    desk: Desk
    tokens: Tokens
    intake: Intake
    tell: Callable[[str], None] = lambda _: None
