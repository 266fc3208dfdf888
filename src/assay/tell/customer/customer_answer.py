"""The shape of what a customer is told of a node."""

from __future__ import annotations

from typing_extensions import TypedDict


class CustomerExplanationAnswer(TypedDict):
    """What a customer is told of a node."""

    node: str
    """The name of the node."""
    in_service: bool
    """Whether customers can use the node."""
    since: str
    """Since when: ISO 8601 with the offset of UTC."""
    as_of: str
    """When this was said: ISO 8601 with the offset of UTC."""
    happened: str
    """What happened; may have several lines."""
    means: str
    """What it means for the customer."""
    doing: str
    """What is being done."""
    back: str
    """When the node should be back."""


class UnknownForCustomerAnswer(TypedDict):
    """What a customer is told while the ledger cannot be read."""

    node: str
    """The name of the node."""
    in_service: None
    """Always null: it is not known."""
    since: None
    """Always null: it is not known."""
    happened: str
    """That the state of the node is not known."""
    means: None
    """Always null: it is not known."""
    doing: None
    """Always null: it is not known."""
    back: None
    """Always null: it is not known."""
