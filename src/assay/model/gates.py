"""Gates: what a run must come to before people go on. Bounds on outcomes that decide, pool by pool."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.spec import Name, Spec, Strict

ANY = "any"
Percent = Annotated[float, Field(gt=0, le=100)]
Share = Annotated[float, Field(ge=0, lt=100)]


class PoolGate(Strict):
    """Bounds on a pool's outcomes, in per cent of those that decide: passed at least, not to be judged at most.

    A failure that a known issue excuses, and what a check on trial says, decide nothing and count nowhere.
    """

    success_percent: Percent | None = None
    unknown_percent: Share | None = None

    @model_validator(mode="after")
    def _bounds_something(self) -> PoolGate:
        if self.success_percent is None and self.unknown_percent is None:
            raise ValueError("give success_percent or unknown_percent")
        return self


class Gates(Spec):
    """What `assay gate` holds a run to. A bound of a pool stands in place of the same bound of `any`.

    `new_failures` is how many outcomes may fail that did not in the last run of the same selection.
    """

    kind: Literal["Gates"]
    sources: list[str] = Field(min_length=1)
    pools: dict[Name, PoolGate] = Field(default={})
    new_failures: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _bounds_something(self) -> Gates:
        if not self.pools and self.new_failures is None:
            raise ValueError("give pools or new_failures")
        return self
