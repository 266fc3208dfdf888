"""GitHub's workflow commands: lines that its runners show as annotations at a file and line."""

from __future__ import annotations

from collections.abc import Mapping


def annotation(level: str, properties: Mapping[str, object], message: str) -> str:
    """Return the command of an annotation; `level` is error, warning or notice, empty properties are left out."""
    said = ",".join(f"{name}={escaped(str(value), ':,')}" for name, value in properties.items() if value)
    return f"::{level} {said}::{escaped(message)}"


def escaped(text: str, also: str = "") -> str:
    """Return text as workflow commands want it: `%`, line ends and `also` as percent codes."""
    return "".join(f"%{ord(sign):02X}" if sign in "%\r\n" + also else sign for sign in text)
