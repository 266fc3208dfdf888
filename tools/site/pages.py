"""Puts the pages of docs/ and of the repository's root into one folder, with links that hold there."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath

ROOT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
"""Where a page of the root stands on the site."""
LINK = re.compile(r"\[([^\[\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def gather_pages(root: Path, folder: Path) -> None:
    """Write the pages of a checkout into a new folder."""
    shutil.copytree(root / "docs", folder)
    for name, place in ROOT_PAGES.items():
        (folder / place).write_text((root / name).read_text())
    origins = {place: name for name, place in ROOT_PAGES.items()}
    for page in folder.rglob("*.md"):
        place = page.relative_to(folder).as_posix()
        page.write_text(move_links(page.read_text(), origins.get(place, f"docs/{place}"), place, root))


def move_links(text: str, origin: str, place: str, root: Path) -> str:
    """Return the text of a page that moves from `origin` in the checkout `root` to `place` on the site.

    Links to what is in the checkout and is no page, such as a folder, become their words. Broken links stay.
    """

    def move(link: re.Match[str]) -> str:
        words, target, anchor = link.groups(default="")
        here = os.path.normpath(PurePosixPath(origin).parent / target)
        is_page = here in ROOT_PAGES or here.startswith("docs/")
        if (root / here).is_dir() or (not is_page and (root / here).exists()):
            return words
        moved = ROOT_PAGES.get(here) or here.removeprefix("docs/")
        return f"[{words}]({os.path.relpath(moved, PurePosixPath(place).parent)}{anchor})"

    return LINK.sub(move, text)
