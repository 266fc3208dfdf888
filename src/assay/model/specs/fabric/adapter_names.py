"""AdapterNames: how InfiniBand adapters announce the host that they are in, as data."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from assay.model.specs.spec_document import SpecDocument, StrictModel


class HostAdapter(NamedTuple):
    """The host that an adapter is in, and the host's name for it. `rail` is its place in a list, -1 without one."""

    host: str
    slot: str
    rail: int = -1


def _check_pattern(text: str) -> str:
    try:
        groups = re.compile(text).groupindex.keys()
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None
    if groups != {"host", "slot"}:
        raise ValueError(f"{text!r} has not exactly the groups `host` and `slot`: write (?P<host>…) and (?P<slot>…)")
    return text


class AdapterNamePattern(StrictModel):
    """One way to write an adapter's name.

    `pattern`: a regular expression (Python) for the whole text, with the groups `host` and `slot`. `slot` is the
    adapter's name in its host, such as mlx5_3.
    """

    pattern: Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_check_pattern)]
    source: str


class AdapterNames(SpecDocument):
    """How adapters announce themselves (NodeDesc). `assay fabric learn` tells by it which adapters a host has.

    `patterns`: by name, the first that fits counts. `no_hosts`: texts that stand for no host.
    """

    kind: Literal["AdapterNames"]
    patterns: dict[str, AdapterNamePattern] = Field(min_length=1)
    no_hosts: list[str] = Field(default=[])

    def read(self, text: str) -> HostAdapter | None:
        """Return what an adapter's text says of its host, None where no pattern fits."""
        found = next(filter(None, (pattern.fullmatch(text) for pattern in self._compiled)), None)
        return HostAdapter(found["host"], found["slot"]) if found and found["host"] not in self.no_hosts else None

    @cached_property
    def _compiled(self) -> list[re.Pattern[str]]:
        return [re.compile(one.pattern) for one in self.patterns.values()]
