"""Texts inside rich's markup: nothing in them is markup, and none begins a line of its own."""

from __future__ import annotations

from assay.model.text.printable_text import escape_line


def escape(text: str) -> str:
    """Return a text for rich's markup, in one printable line."""
    from rich.markup import escape as escape_brackets

    return escape_brackets(escape_line(text))
