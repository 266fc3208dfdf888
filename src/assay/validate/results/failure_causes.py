"""What one cause is: outcomes of one check with one reason, whatever node, part or number the reason names.

One rule for the lines of `assay results`, those of `--compare`, and the cards of the report.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from assay.model.outcome import CheckVerdict

UNKNOWN_VERDICTS = ("error", "skip")
"""Verdicts for which one cause, such as a dead collector, often affects many checks of a node."""
_ADDRESSES = re.compile(r"\b[0-9a-fA-F]{2,}(?::[0-9a-fA-F]{2,})+(?:\.[0-9a-fA-F]+)?\b")
"""Addresses of PCI devices and of network ports, whose parts need not hold a digit."""
_NUMBERS = re.compile(r"\b\w*(?:\d\w*|(?<=\d)[.,](?=\d))+")
"""Numbers, and words with a digit: GUIDs, serial numbers, digests, `gpu3`."""


class FailureCause(NamedTuple):
    """The check, "" where the cause may affect any check, the verdict, and the reason without names and numbers."""

    check: str
    verdict: CheckVerdict | str
    reason: str


def find_cause(check: str, verdict: CheckVerdict | str, reason: str, node: str, was: str = "") -> FailureCause:
    """Return the cause of an outcome on a node, which was judged `was` before ("" for not)."""
    of_any_check = verdict in UNKNOWN_VERDICTS or (verdict == "pass" and was in UNKNOWN_VERDICTS)
    return FailureCause("" if of_any_check else check, verdict, normalise_reason(reason, node))


def normalise_reason(reason: str | None, node: str) -> str:
    """Return a reason with 0 for what differs between nodes: the node's name, addresses, and words with digits."""
    return _normalise_numbers((reason or "").replace(node, "0") if node else reason or "")


@lru_cache(4096)
def _normalise_numbers(reason: str) -> str:
    return _NUMBERS.sub("0", _ADDRESSES.sub("0", reason))
