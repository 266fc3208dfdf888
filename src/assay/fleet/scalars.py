"""What a YAML scalar means: the rules of YAML 1.1, as Ansible and every reader built on PyYAML applies them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import yaml

ELSEWHERE = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+")
"""What YAML 1.2 calls a number and YAML 1.1 text: an editor and assay would not read the same."""
CORE = "tag:yaml.org,2002:"
_RESOLVERS: dict[str, list[tuple[str, Any]]] = yaml.SafeLoader.yaml_implicit_resolvers
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_KNOWN = frozenset(CORE + name for name in ("bool", "float", "int", "null", "str", "timestamp"))


class UnknownTag(ValueError):
    """A tag that means nothing here."""


def scalar(text: str, *, plain: bool, tag: str | None) -> Any:
    """Return the value of a scalar. Raises UnknownTag, and ValueError for text that its tag does not allow."""
    if tag is None or tag == "!":
        return unquoted(text) if plain and tag is None else text
    if tag == "!vault":
        return {"__ansible_vault": text}
    if tag == "!unsafe":
        return text
    if tag not in _KNOWN:
        raise UnknownTag(tag.removeprefix(CORE))
    return _typed(text, tag)


@lru_cache(maxsize=4096)
def unquoted(text: str) -> Any:
    """Return the value of a scalar without quotes and tag. Raises ValueError."""
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return _SPECIAL[tag] or text if tag in _SPECIAL else _typed(text, tag)
    if ELSEWHERE.fullmatch(text):
        raise ValueError(f"{text} is text to some readers of YAML and a number to others")
    return text


def _typed(text: str, tag: str) -> Any:
    node = yaml.ScalarNode(tag, text)
    try:
        return _CONSTRUCTOR.construct_object(node)
    except (KeyError, IndexError, AttributeError, yaml.YAMLError, OverflowError) as wrong:
        raise ValueError(f"{text!r} is no {tag.removeprefix(CORE)}") from wrong
    finally:
        _CONSTRUCTOR.constructed_objects.clear()


class _Merge:
    """The key `<<`, which takes over the entries of another mapping."""

    def __repr__(self) -> str:
        return "<<"


MERGE = _Merge()
_SPECIAL = {f"{CORE}merge": MERGE, f"{CORE}value": None}
