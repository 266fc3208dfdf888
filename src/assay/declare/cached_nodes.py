"""The nodes of an inventory as sections of a cache file. Images are left out: they follow from the specs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from itertools import repeat
from operator import attrgetter
from typing import Any

import pydantic

from assay.declare.cache_file_format import CacheSections, decode_sections, encode_sections
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings

*PLAIN_NODE_FIELDS, _, _ = (field.name for field in fields(Node))  # the last two are image and settings
NO_IMAGE = ""
NODES, SETTINGS = "nodes", "settings"
"""Names of sections: columns of the nodes, and their distinct settings."""
NodeColumns = dict[str, list[Any]]


def encode_nodes(nodes: Iterable[Node]) -> bytes | None:
    """Return the content of a cache file; None if it would give other nodes than these."""
    columns, settings = _split_nodes(nodes)
    encoded = b"[%s]" % b",".join(model.model_dump_json(exclude_unset=True).encode() for model in settings)
    content = encode_sections({NODES: json.dumps(columns).encode(), SETTINGS: encoded})
    sections = decode_sections(content)
    try:
        is_same = sections is not None and _split_nodes(decode_nodes(sections)) == (columns, settings)
    except pydantic.ValidationError:
        return None
    return content if is_same else None


def decode_nodes(sections: CacheSections) -> Iterable[Node]:
    """Return the nodes of a file. Those with equal settings share them."""
    settings = pydantic.TypeAdapter(list[NodeSettings]).validate_json(sections.bytes(SETTINGS))
    columns = sections.json(NODES)
    columns["hca_guids"] = map(tuple, columns["hca_guids"])
    shared = map(settings.__getitem__, columns[SETTINGS])
    return map(Node, *(columns[name] for name in PLAIN_NODE_FIELDS), repeat(NO_IMAGE), shared)


def _split_nodes(nodes: Iterable[Node]) -> tuple[NodeColumns, list[NodeSettings]]:
    """Return the nodes column by column, and their distinct settings: to compare those once takes a tenth."""
    nodes = list(nodes)
    settings = {id(node.settings): node.settings for node in nodes}
    places = {key: place for place, key in enumerate(settings)}
    columns = {name: list(map(attrgetter(name), nodes)) for name in PLAIN_NODE_FIELDS}
    columns[SETTINGS] = [places[id(node.settings)] for node in nodes]
    return columns, list(settings.values())
