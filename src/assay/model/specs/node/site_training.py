"""A site's own training as a load: its command, and where each line tells the step, the loss and the speed."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, model_validator

from assay.model.specs.spec_document import StrictModel

CommandWord = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$")]
JsonPath = Annotated[str, Field(pattern=r"^[^.\s]+(\.[^.\s]+)*$")]


class LineField(StrictModel):
    """Where a line of the output tells one thing: `json` in a JSON line, or `pattern` in any other.

    `pattern`: a regular expression with one group.
    """

    json_path: JsonPath | None = Field(
        default=None, alias="json", description="Names joined by dots, such as `metrics.loss`."
    )
    pattern: str | None = Field(default=None, max_length=500)

    @model_validator(mode="after")
    def _is_one_of_two(self) -> LineField:
        if (self.json_path is None) == (self.pattern is None):
            raise ValueError("give json or pattern, and not both")
        if self.pattern is not None:
            try:
                groups = re.compile(self.pattern).groups
            except re.error as error:
                raise ValueError(f"pattern: {error}") from None
            if groups != 1:
                raise ValueError(f"pattern: it has {groups} groups; put one pair of parentheses around what is read")
        return self


class SiteTraining(StrictModel):
    """A training workload of the site, such as a few steps of Megatron or TorchTitan in the site's image.

    `command`: its words, which are found in the node's PATH and run without a shell. `deadline_s`: after so many
    seconds it is ended. `least_steps`: with fewer steps it has not ended well. `step`, `loss`, `tokens_per_s` and
    `digest`: where its lines tell them; a line without a step tells nothing.
    """

    command: list[CommandWord] = Field(min_length=1)
    deadline_s: int = Field(ge=1, le=14_400)
    least_steps: int = Field(default=1, ge=1)
    step: LineField
    loss: LineField
    tokens_per_s: LineField | None = None
    digest: LineField | None = None
