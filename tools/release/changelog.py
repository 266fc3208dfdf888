"""Reads the notes of one version from CHANGELOG.md."""

from __future__ import annotations

import re


class NoNotesError(ValueError):
    """CHANGELOG.md says nothing of the version."""


def find_notes(changelog: str, version: str) -> str:
    """Return what stands below the heading `## VERSION` or `## VERSION (DATE)`, without the heading.

    Raises `NoNotesError` where there is no such heading, or nothing below it.
    """
    sections = re.split(r"^## +", changelog, flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, notes = section.partition("\n")
        if re.fullmatch(rf"{re.escape(version)}(?: \(.+\))?", heading.strip()) and notes.strip():
            return notes.strip() + "\n"
    raise NoNotesError(f"CHANGELOG.md has no notes below a heading '## {version} (DATE)': rename '## Unreleased'")
