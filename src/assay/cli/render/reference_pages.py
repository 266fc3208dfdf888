"""Writes the reference of the fleet repository: `python -m assay.cli.render.reference_pages [ROOT]`."""

from __future__ import annotations

import sys
from pathlib import Path

from assay.cli.answers.answer_files import build_answer_files
from assay.collectives.search_drawing import draw_search
from assay.fabric.design_drawings import draw_gaps, draw_ports, draw_tiers
from assay.fleet.fleet_loader import load_fleet
from assay.fleet.spec_reference.kind_pages import FOLDER, build_pages

DRAWINGS = {"fabric-tiers.svg": draw_tiers, "fabric-ports.svg": draw_ports, "fabric-gaps.svg": draw_gaps}
DRAWN_DESIGN = "compute"


def build_reference(root: Path) -> dict[str, str]:
    """Return every generated file below `docs/` by its path: pages of kinds, schemas of answers, and pictures."""
    design = load_fleet(root).designs.get(DRAWN_DESIGN)
    drawings = {f"docs/{name}": draw(design) for name, draw in DRAWINGS.items() if design and design.fat_tree}
    drawings["docs/collectives.svg"] = draw_search()
    return drawings | build_answer_files() | {f"{FOLDER}/{name}": text for name, text in build_pages(root).items()}


def write_reference(root: Path) -> None:
    """Write all generated files, and remove what is of kinds and commands that are gone."""
    built = build_reference(root)
    for path, text in built.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    for old in [*(root / FOLDER).glob("*.md"), *(root / FOLDER).glob("*/*.json")]:
        if old.relative_to(root).as_posix() not in built:
            old.unlink()


if __name__ == "__main__":
    write_reference(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
