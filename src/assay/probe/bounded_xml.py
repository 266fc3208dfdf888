"""Read XML that a tool printed: no entity, nothing from elsewhere, and bounds on size, depth and number of elements."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

MOST_BYTES = 32 * 2**20
MOST_ELEMENTS = 500_000
MOST_DEPTH = 32


class Unreadable(ValueError):
    """What was given is no XML that can be trusted."""


def parse(content: bytes) -> Element:
    """Return the root element of UTF-8 XML. Raises Unreadable.

    A document type may be named; it is not loaded. One that declares an entity is refused, so nothing can grow.
    """
    if len(content) > MOST_BYTES:
        raise Unreadable(f"more than {MOST_BYTES} bytes")
    reader = _Reader()
    try:
        reader.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise Unreadable(str(error)) from None
    return reader.builder.close()


class _Reader:
    """An expat parser that builds elements and counts them."""

    def __init__(self) -> None:
        self.builder = TreeBuilder()
        self.depth = self.elements = 0
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self.builder.data
        self.parser.EntityDeclHandler = self._refuse

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.elements += 1
        if self.depth > MOST_DEPTH or self.elements > MOST_ELEMENTS:
            raise Unreadable(f"more than {MOST_DEPTH} elements deep, or more than {MOST_ELEMENTS} of them")
        self.builder.start(name, attributes)

    def _end(self, name: str) -> None:
        self.depth -= 1
        self.builder.end(name)

    def _refuse(self, *_: Any) -> None:
        raise Unreadable("it declares an entity")
