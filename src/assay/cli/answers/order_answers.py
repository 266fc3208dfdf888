"""The shapes of what the verbs that give orders print with `--format json`."""

from __future__ import annotations

from assay.model.facts import fact, shown


@fact
class OrderInAnswer:
    """What became of an order for one node. What follows `told` is missing if nothing had to be recorded."""

    node: str
    """The name of the node."""
    new: bool
    """Whether the order was recorded now; false if somebody gave the same order just before, or nothing had to be."""
    told: str
    """What comes next."""
    id: str | None = shown(omit=True, default=None)
    """The id of the order's entry in the ledger."""
    kind: str | None = shown(omit=True, default=None)
    """The kind of that entry: hold, release, move, zap.asked, certified, approved or declined."""
    at: str | None = shown(omit=True, default=None)
    """When the order was given: ISO 8601 with the offset of UTC."""
    who: str | None = shown(omit=True, default=None)
    """Who gave the order."""
    reason: str | None = shown(omit=True, default=None)
    """Why, in that person's words."""
    to: str | None = shown(omit=True, default=None)
    """The state that the node shall go to; only for move, zap and wipe."""
    decision: str | None = shown(omit=True, default=None)
    """The id of what the word is about; only for approve and decline."""
    within_hours: float | None = shown(omit=True, default=None)
    """For how many hours it is meant; missing for as long as the policy says."""
    now: bool | None = shown(omit=True, default=None)
    """True if the node shall go even while it has jobs; else missing."""
    until: str | None = shown(omit=True, default=None)
    """When a hold ends by itself: ISO 8601; missing if only `assay release` ends it."""


@fact
class OrdersAnswer:
    """What became of an order, for each node that it names."""

    words: list[OrderInAnswer]
    """The order for each node."""
