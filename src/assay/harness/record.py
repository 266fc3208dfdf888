"""`python -m assay.harness.record n0003 fabric-compute`: keep the last evidence as the recordings of the suites.

The first document of a node spec is what every check must pass on; `suites/recordings/*.yaml` says how each check is
made to fail on it. Record anew when the probe, the BMC reader or the specs learn something.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from assay.fleet.load import load_fleet
from assay.harness.shelf import Shelf
from assay.harness.silence import Silence
from assay.model.errors import Trouble
from assay.model.fleet import Fleet


def record(fleet: Fleet, evidence: Path, name: str) -> Path:
    """Write the newest document of `name` to `suites/recordings`, a node's under its spec's name. Raises Trouble."""
    try:
        document = Shelf(evidence).latest(name).evidence.as_json()
    except Silence as silence:
        raise Trouble(silence.reason, where=silence.where) from None
    for said in (document["channels"].get("discovery", {}), *document["channels"].get("ports", {}).values()):
        if isinstance(said, dict):
            said.pop("command", None)  # names the machine that it was recorded on
    known = fleet.nodes.get(name)
    path = fleet.root / "suites" / "recordings" / f"{known.spec if known else name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return path


def main() -> None:
    """Record the named documents."""
    parser = argparse.ArgumentParser("python -m assay.harness.record", description="Keep evidence as recordings.")
    parser.add_argument("names", nargs="+", metavar="NAME", help="a node, fabric-DESIGN or week-DESIGN")
    parser.add_argument("--fleet", type=Path, default=Path(), help="the fleet repository")
    parser.add_argument("--evidence", type=Path, help="folder of documents (default: the fleet's latest)")
    asked = parser.parse_args()
    try:
        fleet = load_fleet(asked.fleet.resolve())
        for name in asked.names:
            path = record(fleet, asked.evidence or fleet.root / ".assay" / "evidence" / "latest", name)
            sys.stderr.write(f"{name} → {path}\n")
    except Trouble as trouble:
        sys.exit(f"assay: {trouble}")


if __name__ == "__main__":
    main()
