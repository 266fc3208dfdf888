"""What `assay explain --for customer` says of a fault class and of a state, in words that need no glossary."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from assay.model.specs.spec_document import StrictModel

SINCE = "{since}"
"""Stands for the time when the fault was first seen."""
_PLACEHOLDER = re.compile(r"\{[^}]*\}?|\}")


def _check_placeholders(text: str) -> str:
    if wrong := sorted({found for found in _PLACEHOLDER.findall(text) if found != SINCE}):
        raise ValueError(f"{wrong[0]!r} has no meaning here; the only placeholder is {SINCE}")
    return text


CustomerText = Annotated[str, AfterValidator(_check_placeholders)]
"""Whole sentences. `{since}` stands for a time."""


class FaultCustomerWords(StrictModel):
    """A fault class for customers: what `happened` (default: the class's summary), and what it `means` for their work.

    In `means`, `{since}` is when the fault was first seen. Both are whole sentences. `also_before`: the fault may have
    harmed jobs before it was seen, so it counts even if a test finds it on an empty node.
    """

    happened: str = ""
    means: CustomerText = ""
    also_before: bool = False


class StateCustomerWords(StrictModel):
    """A state for customers: what it `means` for their work, and what we are `doing`.

    `back` completes the sentence "When it will be back is not known yet: …" where nothing supports an estimate.
    """

    means: str = ""
    doing: str = ""
    back: str = ""
