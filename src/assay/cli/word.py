"""A person's word in the ledger: who said it, about which nodes, and why. Said twice, it is there once."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.model.entry import Entry
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.cli.desk import Desk
    from assay.lifecycle.story import Story

NodeNames = Annotated[list[str], typer.Argument(metavar="NODE", help="The node, or several.", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is shown wherever the node is.", show_default=False)]
Who = Annotated[
    str, typer.Option("--who", envvar="ASSAY_WHO", help="Who says so; by default the user who runs the command.")
]


@dataclass(frozen=True, slots=True)
class Word:
    """What a person's word comes to for one node: what is `told` them, and the line to write (None: it stands)."""

    node: str
    told: str
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who speaks, why, and when (ISO 8601 UTC)."""

    who: str
    reason: str
    at: str

    def entry(self, ident: str, kind: str, node: str, **more: Any) -> Entry:
        """Return the line of a word."""
        return Entry(ident, self.at, kind, node, {**more, "who": self.who, "reason": self.reason})


def speaker(desk: Desk, who: str, reason: str) -> Speaker:
    """Return who speaks. Raises Trouble without a reason, or where nobody knows who it is."""
    said = in_one_line(reason)
    if not said:
        raise Trouble("a reason is needed: others will read it", fix="--reason 'what for'")
    return Speaker(name_of(who), said, desk.clock.now().isoformat())


def in_one_line(text: str) -> str:
    """Return what a person typed as one line, without what a terminal would act on."""
    return " ".join("".join(one for one in text if one.isprintable() or one.isspace()).split())


def speak(desk: Desk, nodes: Sequence[str], word: Callable[[Story], Word], form: str) -> None:
    """Write down a word about each of the nodes, all or none, and say what was written.

    Raises Trouble with every node that it cannot be said of, and why.
    """
    words, refused = list[Word](), list[Trouble]()
    for story in _stories(desk, nodes):
        try:
            words.append(word(story))
        except Trouble as trouble:
            refused.append(trouble)
    if refused:
        raise _together(refused, len(words))
    written = [one for one in words if one.entry]
    new = desk.ledger.append(*(one.entry for one in written if one.entry))
    _tell(words, {one.node for one, fresh in zip(written, new, strict=True) if fresh}, form)


def _stories(desk: Desk, nodes: Sequence[str]) -> list[Story]:
    from assay.cli.roll import stories, story_of

    known = {story.node: story for story in stories(desk)}
    return [known.get(name) or story_of(desk, name) for name in dict.fromkeys(nodes)]


def _together(refused: Sequence[Trouble], others: int) -> Trouble:
    if len(refused) == 1 and not others:
        return refused[0]
    lines = "\n".join(f"  {one}" for one in refused)
    left = f"; of the other {others} nothing was written either" if others else ""
    return Trouble(f"this cannot be said of {len(refused)} of {len(refused) + others} nodes{left}:\n{lines}")


def _tell(words: Sequence[Word], new: Collection[str], form: str) -> None:
    if form == "json":
        typer.echo(json.dumps({"words": [_plain(one, new) for one in words]}, ensure_ascii=False))
        return
    for one in words:
        late = "  (somebody said so just now: nothing was added)" if one.entry and one.node not in new else ""
        typer.echo(f"{one.told}{late}")


def _plain(one: Word, new: Collection[str]) -> dict[str, Any]:
    entry = one.entry
    said = {"id": entry.id, "kind": entry.kind, "at": entry.at, **entry.body} if entry else {}
    return {"node": one.node, "new": one.node in new, "told": one.told, **said}


def name_of(who: str) -> str:
    """Return who types: as they say, else the user. Raises Trouble where nobody knows."""
    try:
        return in_one_line(who) or in_one_line(os.environ.get("ASSAY_WHO", "")) or getpass.getuser()
    except (KeyError, OSError):
        raise Trouble("cannot tell who you are", fix="--who NAME, or set ASSAY_WHO") from None
