"""Writes the generated pages, schemas of answers and pictures below docs/: `python -m tools.reference`."""

from __future__ import annotations

from pathlib import Path

from tools.reference.generated_files import write_reference

if __name__ == "__main__":
    write_reference(Path(__file__).parents[2])
