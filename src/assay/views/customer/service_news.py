"""What happened to the nodes of a customer lately: when each left service and came back, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal

from assay.lifecycle.node_state import NodeState
from assay.lifecycle.service_absences import ServiceAbsence, list_absences
from assay.model.node import Node
from assay.model.timestamps import format_minute, format_time, parse_time
from assay.views.customer.customer_explanation import HEADINGS, explain_to_customer
from assay.views.customer.customer_situation import read_customer_situation
from assay.views.customer.customer_view import list_policy_states
from assay.views.record_source import RecordSource

NEWS_DAYS = 30
MAX_NEWS = 60
MAX_EXPLAINED = 40
"""So many news are explained in full: each costs a reading of what is known of the node."""
TITLES = {"left": "{} left service", "back": "{} is back in service"}


@dataclass(frozen=True, slots=True)
class ServiceNews:
    """A node left service, or came back, `at` a time. `changed_at`: when what is told of it changed last.

    `told`: paragraphs as pairs of heading ("" for none) and text; a text may have several lines.
    """

    node: str
    what: Literal["left", "back"]
    at: datetime
    changed_at: datetime
    told: tuple[tuple[str, str], ...]

    @property
    def title(self) -> str:
        """The news in a few words."""
        return TITLES[self.what].format(self.node)


def list_service_news(source: RecordSource, sees: Callable[[Node], bool]) -> list[ServiceNews]:
    """Return the news of the nodes that a customer may see, the newest first: of NEWS_DAYS days, MAX_NEWS at most.

    Nodes that are gone for good have none.
    """
    states, fleet, now = source.read_node_states(), source.fleet, source.clock.now()
    seen = {node.name for node in fleet.nodes.values() if sees(node)}
    serving, final = list_policy_states(fleet)
    ours = [one for one in states if one.node in seen and one.state not in final]
    since = now - timedelta(days=NEWS_DAYS)
    moves = (move for state in ours for move in _list_moves(state, serving) if move.at >= since)
    newest = sorted(moves, key=lambda move: (move.at, move.state.node), reverse=True)[:MAX_NEWS]
    return [_make_news(source, states, move, in_full=number < MAX_EXPLAINED) for number, move in enumerate(newest)]


@dataclass(frozen=True, slots=True)
class _Move:
    """One end of an absence. `is_last`: the node has not left service since the absence began."""

    state: NodeState
    absence: ServiceAbsence
    what: Literal["left", "back"]
    at: datetime
    is_last: bool


def _list_moves(state: NodeState, serving: set[str]) -> Iterator[_Move]:
    absences = list_absences(state, serving)
    for absence in absences:
        is_last = absence is absences[-1]
        yield _Move(state, absence, "left", absence.began_at, is_last)
        if absence.ended_at:
            yield _Move(state, absence, "back", absence.ended_at, is_last)


def _make_news(source: RecordSource, states: Sequence[NodeState], move: _Move, *, in_full: bool) -> ServiceNews:
    """Return the news. What is known now is told of the last thing that happened to the node, else only the times."""
    absence = move.absence
    told: tuple[tuple[str, str], ...] = (("", _format_span(absence)),)
    is_newest = move.is_last and (move.what == "back" or absence.ended_at is None)
    if is_newest and in_full:
        texts = asdict(explain_to_customer(read_customer_situation(source, states, move.state)))
        told = tuple((HEADINGS[name], text) for name, text in texts.items() if text)
    changed_at = parse_time(move.state.since) if is_newest else absence.ended_at or move.at
    return ServiceNews(move.state.node, move.what, move.at, changed_at, told)


def _format_span(absence: ServiceAbsence) -> str:
    began = format_minute(format_time(absence.began_at))
    if absence.ended_at is None:
        return f"The node has been out of service since {began}."
    return f"The node was out of service from {began} to {format_minute(format_time(absence.ended_at))}."
