"""The shapes of what the verbs that give orders print with `--format json`."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from assay.tell.views.open_breakers import BreakerStatus


class OrderInAnswer(TypedDict):
    """What became of an order for one node. What follows `told` is missing if nothing had to be recorded."""

    node: str
    """The name of the node."""
    new: bool
    """Whether the order was recorded now; false if somebody gave the same order just before, or nothing had to be."""
    told: str
    """What comes next."""
    id: NotRequired[str]
    """The id of the order's entry in the ledger."""
    kind: NotRequired[str]
    """The kind of that entry: hold, release, move, zap.asked, certified, approved or declined."""
    at: NotRequired[str]
    """When the order was given: ISO 8601 with the offset of UTC."""
    who: NotRequired[str]
    """Who gave the order."""
    reason: NotRequired[str]
    """Why, in that person's words."""
    to: NotRequired[str]
    """The state that the node shall go to; only for move, zap and wipe."""
    decision: NotRequired[str]
    """The id of what the word is about; only for approve and decline."""
    within_hours: NotRequired[float]
    """For how many hours it is meant; missing for as long as the policy says."""
    now: NotRequired[bool]
    """True if the node shall go even while it has jobs; else missing."""
    until: NotRequired[str]
    """When a hold ends by itself: ISO 8601; missing if only `assay release` ends it."""


class OrdersAnswer(TypedDict):
    """What became of an order, for each node that it names."""

    words: list[OrderInAnswer]
    """The order for each node."""


class BreakersAnswer(TypedDict):
    """The circuit breakers that hold nodes back."""

    breakers: list[BreakerStatus]
    """The breakers, by pool."""


class ClearedBreakerAnswer(TypedDict):
    """A circuit breaker that was cleared, and what it held back until then."""

    pool: str
    """The pool whose breaker it is."""
    since: str
    """Since when it held nodes back: ISO 8601 with the offset of UTC."""
    nodes: list[str]
    """The nodes whose repair it held back."""
    cordoned: list[str]
    """Those of them that are cordoned meanwhile."""
    clear: str
    """The command that clears it."""
    reason: str
    """Why it was cleared, in that person's words."""
    who: str
    """Who cleared it."""
    at: str
    """When: ISO 8601 with the offset of UTC."""
    new: bool
    """Whether this was recorded now; false if it was recorded before."""
