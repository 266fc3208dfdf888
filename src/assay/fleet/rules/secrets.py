"""Secrets that stand in the repository, where git would keep them for ever. No message repeats one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from assay.fleet import telltale
from assay.fleet.document import Document
from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, rule
from assay.fleet.telltale import Hint

FIX = "take it out, and refer to it: {env: NAME}, {file: PATH}, {command: [PROGRAM, …]} or !vault; then change it"
GROUP = ("hosts", "vars", "children")
VAULT = "__ansible_vault"
FORMED = "hca_guids"  # three of four texts in an inventory, and their form leaves no room for a secret
WHY = "Git keeps it for ever, for everybody who can read the repository."


class Sighting(NamedTuple):
    """One secret: which rule finds it, where it is, and what can be said of it."""

    code: str
    document: Document
    path: tuple[Any, ...]
    what: str


_seen: WeakKeyDictionary[Draft, list[Sighting]] = WeakKeyDictionary()


@rule("ASY0090", "a secret in plain text", why=WHY)
def plain_text(draft: Draft) -> Iterator[Finding]:
    """Find variables that are named as secrets and hold a plain text."""
    yield from _told(draft, "ASY0090")


@rule("ASY0091", "a private key", why=WHY)
def private_key(draft: Draft) -> Iterator[Finding]:
    """Find private key blocks."""
    yield from _told(draft, "ASY0091")


@rule("ASY0092", "a token of a known kind", why=WHY)
def token(draft: Draft) -> Iterator[Finding]:
    """Find tokens that are known by their form."""
    yield from _told(draft, "ASY0092")


@rule("ASY0093", "a password in a URL", why="It also ends in the logs of whatever opens that URL.")
def password_in_url(draft: Draft) -> Iterator[Finding]:
    """Find `user:password@` in URLs."""
    yield from _told(draft, "ASY0093")


@rule("ASY0094", "a text that looks like a key", why=WHY)
def by_chance(draft: Draft) -> Iterator[Finding]:
    """Find texts that look like chance, under names that make them suspicious."""
    yield from _told(draft, "ASY0094")


def _told(draft: Draft, code: str) -> Iterator[Finding]:
    if draft not in _seen:
        _seen[draft] = [found for document in _documents(draft) if _doubtful(document) for found in _look(document)]
    for sighting in _seen[draft]:
        if sighting.code == code:
            place = (sighting.document.file, *sighting.document.place(sighting.path))
            yield Finding(place, sighting.what, FIX)


def _documents(draft: Draft) -> list[Document]:
    """Return every file that was read, each once, however many hosts have their variables from it."""
    found = {id(layer.document): layer.document for layer in draft.inventory.every_layer()}
    found |= {id(spec.document): spec.document for spec in draft.specs}
    return list(found.values())


def _doubtful(document: Document) -> bool:
    """Whether it is worth a close look. This is asked of every value of 10,000 nodes, so it keeps no account."""
    hints: dict[Any, Hint] = {}
    seen: set[Any] = set()
    waiting: list[Any] = [{"": document.data}]
    while waiting:
        one = waiting.pop()
        for name, value in one.items():
            if name not in hints:
                hints[name] = telltale.hint(str(name))
            if hints[name] and not _harmless(value):
                return True
            if isinstance(value, dict):
                waiting.append(value)
            elif isinstance(value, list) and name != FORMED:
                _take_list(value, seen, waiting)
            elif isinstance(value, str):
                seen.add(value)
    everything = "\n".join(one for one in seen if isinstance(one, str))
    return any(needle in everything for needle in telltale.NEEDLES)


def _take_list(values: list[Any], seen: set[Any], waiting: list[Any]) -> None:
    """Take in a list: at once where it holds no containers, as nearly all do."""
    try:
        seen.update(values)
    except TypeError:
        waiting += [{"": value} for value in values]


def _harmless(value: Any) -> bool:
    """Whether a value of a telling name is a reference, or nothing that could be a secret."""
    if isinstance(value, dict):
        return VAULT in value or telltale.REFERENCES.issuperset(value)
    return isinstance(value, bool | float | None) or (isinstance(value, str) and not telltale.is_plain(value))


def _look(document: Document) -> Iterator[Sighting]:
    waiting: list[tuple[tuple[Any, ...], Any, Hint]] = [((), document.data, Hint.NOTHING)]
    while waiting:
        path, one, known = waiting.pop()
        if isinstance(one, dict) and VAULT not in one:
            is_group = any(isinstance(one.get(name), dict) for name in GROUP)
            waiting += [
                ((*path, name), value, Hint.NOTHING if is_group or _names_hosts(path) else telltale.below(name, known))
                for name, value in one.items()
            ]
        elif isinstance(one, list):
            waiting += [((*path, index), value, known) for index, value in enumerate(one)]
        elif isinstance(one, str | int) and not isinstance(one, bool):
            sighting = _judged(document, path, one, known)
            if sighting is not None:
                yield sighting


def _names_hosts(path: tuple[Any, ...]) -> bool:
    """Whether the entries below are called after hosts or groups, whose names say nothing."""
    return bool(path) and path[-1] in ("hosts", "children")


def _judged(document: Document, path: tuple[Any, ...], value: str | int, known: Hint) -> Sighting | None:
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    if isinstance(value, int):
        code = "ASY0090" if known is Hint.SURELY and "pass" in name.lower() else ""
        return Sighting(code, document, path, f"{name} holds a secret in plain text") if code else None
    shape = telltale.shape_of(value)
    if shape is not None:
        code = {telltale.KEY: "ASY0091", telltale.URL: "ASY0093"}.get(shape, "ASY0092")
        return Sighting(code, document, path, f"{name or 'this'} holds {shape.what}")
    if not telltale.is_secret(value, known, name):
        return None
    if known is Hint.SURELY:
        return Sighting("ASY0090", document, path, f"{name} holds a secret in plain text")
    return Sighting("ASY0094", document, path, f"{name} holds what looks like a key")
