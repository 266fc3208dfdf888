"""The answer of `assay explain` as a tree for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from assay.model.timestamps import format_minute, format_second
from assay.tell.views.code_meanings import format_code_meaning

if TYPE_CHECKING:
    from rich.tree import Tree

MAX_REASONS_SHOWN = 5
_EFFECT_TEXTS = {"intent": "started", "done": "done, not yet verified", "unknown": "ended with unknown result"}
_EFFECT_COLOURS = {"verified": "green", "failed": "red", "unknown": "yellow"}
_RECORD_TEXTS = {
    "ticket": "a technician was asked for",
    "cordon": "[yellow]cordoned again[/]",
    "withdraw": "the pending transition was withdrawn",
    "release": "the hold ended",
}


def build_explanation_tree(status: Mapping[str, Any], chain: Iterable[Mapping[str, Any]], notes: Iterable[str]) -> Tree:
    """Return the answer as a tree: who holds the node, what it waits for, and its decisions with their causes."""
    from rich.tree import Tree

    from assay.cli.markup import escape

    since = f"since {format_second(status['since'])}: {escape(status['because'])}"
    tree = Tree(f"[bold]{status['node']}[/] is in [bold]{status['state']}[/] {since}")
    if hold := status["held"]:
        until = f" until {format_second(hold['until'])} UTC" if hold["until"] else ""
        since = f"since {format_second(hold['since'])}{until}"
        tree.add(f"[yellow]held by {escape(hold['who'])}[/] {since}: {escape(hold['reason'])}")
    if request := status["asked"]:
        who, why = escape(request["who"]), escape(request["reason"])
        at = format_second(request["since"])
        tree.add(f"[yellow]{who} asked for {escape(request['to'])}[/] at {at}: {why}")
    if pending := status["pending"]:
        next_ = "stays cordoned" if pending["to"] == status["state"] else f"will go to {pending['to']}"
        tree.add(f"[yellow]{next_}[/], waits for {escape(', '.join(pending['waiting_for']))}")
    if unknown := status["jobs_unknown"]:
        tree.add(f"[yellow]jobs unknown[/] since {format_second(unknown['since'])}: {escape(unknown['reason'])}")
    for decision in chain:
        _add_causes(tree.add(_format_headline(decision)), decision)
    for note in [*status["returned"], *notes]:
        tree.add(f"[yellow]now[/] {escape(note)}")
    return tree


def _format_headline(decision: Mapping[str, Any]) -> str:
    at = format_second(decision["at"])
    if decision["timing"] == "record":
        if decision["remedy"] == "wait":
            return f"{at}  [yellow]not yet to {decision['to']}[/]"
        return f"{at}  {_RECORD_TEXTS.get(decision['remedy'], 'recorded, no action')}"
    if decision["from"] == decision["to"]:
        return f"{at}  [bold]{decision['remedy']}[/], the state stays"
    arrow = f"[bold]{decision['from']} → {decision['to']}[/]"
    return f"{at}  {arrow}{' when idle' if decision['timing'] == 'pending' else ''}"


def _add_causes(branch: Tree, decision: Mapping[str, Any]) -> None:
    from assay.cli.markup import escape

    for cause in decision["because"]:
        leaf = branch.add(f"[dim]because of[/] {cause['kind']}: {escape(cause['text'])}")
        if meaning := format_code_meaning(cause):
            leaf.add(f"[dim]which means[/] {escape(meaning)}")
        if cause.get("evidence"):
            at = format_second(cause["evidence_at"])
            leaf.add(f"[dim]evidence {cause['evidence'][:12]} of {at}, run {cause['run']}[/]")
    branch.add(f"[dim]by the rule[/] {escape(decision['rule'])}")
    for effect in decision["effects"]:
        colour = _EFFECT_COLOURS.get(effect["standing"], "dim")
        reason = f": {escape(effect['reason'])}" if effect["reason"] else ""
        text = _EFFECT_TEXTS.get(effect["standing"], effect["standing"])
        branch.add(f"[dim]effect[/] {effect['action']} [{colour}]{text}[/] {format_second(effect['at'])}{reason}")


def add_lemon_branch(tree: Tree, lemon: Mapping[str, Any] | None) -> None:
    """Add the answer of `describe_lemon_score` to a tree: nothing for a node without points."""
    from assay.cli.markup import escape

    if lemon is None or not lemon["points"]:
        return
    verdict = "; [red]a lemon[/]: its next fault goes to people" if lemon["is_lemon"] else ""
    branch = tree.add(f"{escape(lemon['summary'])}{verdict}")
    reasons = lemon["reasons"]
    for reason in reasons[-MAX_REASONS_SHOWN:]:
        because = f": {escape(reason['because'])}" if reason["because"] else ""
        branch.add(f"[dim]{reason['weight']:g} for[/] {reason['what']}, {format_minute(reason['at'])}{because}")
    if len(reasons) > MAX_REASONS_SHOWN:
        branch.add(f"[dim]and {len(reasons) - MAX_REASONS_SHOWN} earlier, see --format json[/]")
