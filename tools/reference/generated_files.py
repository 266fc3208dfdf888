"""Every generated file below docs/: pages of commands, kinds, answers, metrics and faults, schemas, and pictures."""

from __future__ import annotations

from pathlib import Path

from assay.declare.loader import load_fleet
from tools.reference.answer_pages import build_answer_files
from tools.reference.command_reference import format_command_reference
from tools.reference.design_drawings import draw_gaps, draw_ports, draw_tiers
from tools.reference.fault_table import replace_fault_table
from tools.reference.kind_pages import FOLDER, build_pages
from tools.reference.metrics_page import format_metrics_page
from tools.reference.search_drawing import draw_search

DRAWINGS = {"fabric-tiers.svg": draw_tiers, "fabric-ports.svg": draw_ports, "fabric-gaps.svg": draw_gaps}
DRAWN_DESIGN = "compute"
FAULTS = "docs/faults.md"


def build_reference(root: Path) -> dict[str, str]:
    """Return every generated file of a repository by its path. Of docs/faults.md, only the table at its end is."""
    fleet = load_fleet(root)
    design = fleet.designs[DRAWN_DESIGN]
    return {
        "docs/commands.md": format_command_reference(),
        "docs/metrics.md": format_metrics_page(),
        FAULTS: replace_fault_table((root / FAULTS).read_text(encoding="utf-8"), fleet.fault_catalog),
        "docs/collectives.svg": draw_search(),
        **{f"docs/{name}": draw(design) for name, draw in DRAWINGS.items()},
        **build_answer_files(),
        **{f"{FOLDER}/{name}": text for name, text in build_pages(root).items()},
    }


def write_reference(root: Path) -> None:
    """Write all generated files, and remove what is of kinds and commands that are gone."""
    built = build_reference(root)
    for path, text in built.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    for old in [*(root / FOLDER).glob("*.md"), *(root / FOLDER).glob("*/*.json")]:
        if old.relative_to(root).as_posix() not in built:
            old.unlink()
