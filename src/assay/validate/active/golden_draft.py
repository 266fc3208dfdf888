"""Writes a draft of the kind GoldenDigests: what nodes that agree have computed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from assay.model.specs.golden_digests import GoldenKey
from assay.model.text.text_lists import format_count
from assay.validate.active.golden import pack_digests
from assay.validate.active.unit_results import UnitName

LINE = 118
ROW = 64  # digits of digests in a line
SCHEMA = "# yaml-language-server: $schema=../schemas/golden-digests.json"


def format_golden_spec(key: GoldenKey, nodes: Sequence[str], digests: Mapping[UnitName, str], on: date) -> str:
    """Return the YAML of a draft. A person sets the owner and says where the nodes' evidence is from."""
    source = f"{format_count(len(digests), 'unit')} on which {' and '.join(nodes)} agreed on {on.isoformat()}"
    head = [
        SCHEMA,
        "kind: GoldenDigests",
        f"name: {make_spec_name(key)}",
        "owner: fleet-engineering  # review: who answers for these digests?",
        f"sources: [{json.dumps(source)}]",
        "computed_by:",
        *(f"  {name}: {json.dumps(text)}" for name, text in key.model_dump().items()),
        f"nodes: {json.dumps(list(nodes))}",
        "digests:",
    ]
    return "\n".join([*head, *_list_tests(digests)]) + "\n"


def make_spec_name(key: GoldenKey) -> str:
    """Return a name for the digests of a key, such as `nvidia-h100-80gb-hbm3-580.95.05-jax-0.10.2-5609643c`."""
    words = f"{key.gpu} {key.driver} {key.engine} {key.program[:8]}".lower()
    return re.sub(r"[^a-z0-9.]+", "-", words).strip("-.")


def _list_tests(digests: Mapping[UnitName, str]) -> Iterator[str]:
    for test, runs in pack_digests(digests).items():
        line = f"  {test}: {json.dumps(runs)}"
        if len(line) <= LINE:
            yield line
            continue
        yield f"  {test}:"
        for first, found in runs.items():
            yield f"    {json.dumps(first)}:"
            most = max(1, ROW // len(max(found, key=len)))
            rows = [found[at : at + most] for at in range(0, len(found), most)]
            text = ",\n       ".join(", ".join(json.dumps(one) for one in row) for row in rows)
            yield f"      [{text}]"
