"""A ticket as a technician reads it, in Markdown. What came from the fabric stands in fences and changes nothing."""

from __future__ import annotations

import re

from assay.model.ticket import Happening, Listed, Place

MARK = "assay-ticket:"
_MARKED = re.compile(r"\A\s*(?:<!-- )?assay-ticket: ([0-9a-f]{16})\b")


def marked(text: str) -> str:
    """Return the id of the ticket that a text, written by `markdown`, is about; "" of any other text."""
    found = _MARKED.match(text)
    return found[1] if found else ""


def title(listed: Listed, longest: int = 250) -> str:
    """Return the title in one line."""
    text = " ".join(listed.ticket.title.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def markdown(listed: Listed) -> str:
    """Return the whole ticket; its first line is the mark by which it is found again."""
    ticket = listed.ticket
    parts = [f"<!-- {MARK} {ticket.id} -->", f"# {_plain(title(listed))}", _state(listed)]
    parts += _section("Where", _places(ticket.places))
    for heading, text in (
        ("Expected", ticket.expected),
        ("Seen", ticket.seen),
        ("Likely cause", ticket.cause),
        ("Also interrupted by the work", ticket.beside),
    ):
        parts += _section(heading, _fenced(text))
    parts += _section("Steps", _steps(ticket.steps))
    parts += _section("Files", _files(ticket.files))
    by_hand = ticket.verify.startswith("assay ")
    parts += _section("When it is done" if by_hand else "Closed by itself when this passes", _fenced(ticket.verify))
    parts += _section("History", "\n".join(f"- {happened(one)}" for one in listed.history))
    return "\n\n".join(parts) + "\n"


def happened(one: Happening) -> str:
    """Return one line of a ticket's history; what was seen is in the ticket."""
    why = f": {_plain(' '.join(one.why.split()))}" if one.what in ("closed", "reopened") and one.why else ""
    return f"{_minute(one.at)} {one.what}{why}"


def _state(listed: Listed) -> str:
    state = f"Closed at {_minute(listed.closed_at)}" if listed.closed_at else f"Open since {_minute(_opened(listed))}"
    times = f"; reopened {listed.reopened}×" if listed.reopened else ""
    severity = f"; {listed.ticket.severity}" if listed.ticket.severity else ""
    return f"**{state}**{times}{severity}; ticket `{listed.ticket.id}`"


def _opened(listed: Listed) -> str:
    return next((one.at for one in reversed(listed.history) if one.what == "reopened"), listed.opened_at)


def _minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def _section(heading: str, text: str) -> list[str]:
    return [f"## {heading}", text] if text else []


def _places(places: tuple[Place, ...]) -> str:
    rows = [(one.site, one.rack, f"U{one.u}" if one.u else "", one.device, one.port, one.label) for one in places]
    lines = [f"| {' | '.join(map(_plain, row))} |" for row in rows]
    head = ["| site | rack | U | device | port | label |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *lines]) if lines else ""


def _steps(text: str) -> str:
    return "\n".join(f"{number}. {_plain(line)}" for number, line in enumerate(text.splitlines(), 1))


def _files(text: str) -> str:
    return "\n".join(
        f"- `{path}` {_plain(what)}" for path, _, what in (line.partition("  ") for line in text.splitlines())
    )


def _fenced(text: str) -> str:
    """Return a text between fences that are longer than any in it."""
    if not text:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _plain(text: str) -> str:
    """Return a text with what Markdown or a tracker would act on (tables, tags, links, mentions) taken literally."""
    return re.sub(r"([\\`*_<>\[\]|@#])", r"\\\1", text).replace("\\@", "@\u2060")
