"""Formats GitHub's workflow commands: an annotation at a line of a file."""

from __future__ import annotations

from collections.abc import Mapping


def format_annotation(level: str, properties: Mapping[str, object], message: str) -> str:
    """Return the command of an annotation. `level` is error, warning or notice; empty properties are left out."""
    fields = ",".join(f"{name}={escape_annotation(str(value), ':,')}" for name, value in properties.items() if value)
    return f"::{level} {fields}::{escape_annotation(message)}"


def escape_annotation(text: str, more: str = "") -> str:
    """Return text with `%`, line ends and the characters of `more` as percent codes."""
    return "".join(f"%{ord(character):02X}" if character in "%\r\n" + more else character for character in text)
