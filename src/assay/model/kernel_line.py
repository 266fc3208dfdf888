"""KernelLine: a message of the kernel as a regular expression, with the literal text by which it is found quickly."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from assay.model.spec import Strict


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles)]
Literal = Annotated[str, Field(min_length=3)]


class KernelLine(Strict):
    """Messages that `pattern` matches; its groups `pci` or `part` say which part of the node they speak of.

    Every such message begins with one of `begins`, or holds one of `holds`: a log of a million lines is searched for
    these first. A class without either is looked for in every line, which is right and slow.
    """

    pattern: Pattern
    begins: list[Literal] = Field(default=[])
    holds: list[Literal] = Field(default=[])

    @model_validator(mode="after")
    def _one_way(self) -> KernelLine:
        if self.begins and self.holds:
            raise ValueError("give begins or holds, not both: a line is looked for in one way")
        return self
