"""Makes evidence to judge, stored as `assay observe` stores it."""

from __future__ import annotations

import copy
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from assay.ledger.runs.reader import StoredRun
from assay.model.evidence import find_object_path, pack_object
from bench.big_fleet import node_name
from bench.programs import ROOT


def evidence(folder: Path, nodes: int, *, first: int = 0, hot: int = 0) -> Path:
    """Write evidence of `nodes` nodes, from `first` on, into a new folder, and return the folder.

    `hot` GPUs of each are too hot.
    """
    folder.mkdir(parents=True)
    recorded = json.loads((ROOT / "suites" / "recordings" / "hgx-h100.json").read_text())
    for number in range(first, first + nodes):
        document = copy.deepcopy(recorded)
        _fit(document, number)
        gpus = document["channels"]["probe"]["gpu"]["devices"]
        for gpu in list(gpus.values())[:hot]:
            gpu["temperature"]["gpu_c"] = {"value": 120}
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        _store(folder, node_name(number), text.encode())
    return folder


def _store(folder: Path, node: str, content: bytes) -> None:
    """Store a document as `assay observe` does: as an object by its digest, and as the latest of its node."""
    digest = hashlib.sha256(content).hexdigest()
    stored = find_object_path(folder.parent / "objects", digest)
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(pack_object(content))
    (folder / f"{node}.json").write_bytes(content)


def counts_of(file: Path) -> Counter[str]:
    """Return the number of outcomes of each verdict in a run's file."""
    with StoredRun.open(file) as stored:
        return stored.counts()


def _fit(document: dict[str, Any], number: int) -> None:
    """Change the recording to another node: name, serial number, GUIDs of the adapters."""
    document["node"] = node_name(number)
    probe, serial = document["channels"]["probe"], f"A52{number + 1:012}"
    for rail, name in enumerate(sorted(probe["hca"])):
        probe["hca"][name]["guid"] = {"value": f"0xa088c203{number + 1:06x}{rail}6"}
    for place in (probe["host"], document["channels"]["bmc"]["system"]):
        place["serial"] = {"value": serial}
