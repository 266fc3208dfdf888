"""What stands in a fleet repository now: its files as they are, and what git says of them."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from assay.declare.repository.git import read_git_error, run_git
from assay.declare.starter.starter_record import FOLDER
from assay.model.errors import AssayError
from assay.model.text.text_lists import format_list

MOST_BYTES = 4 * 2**20
"""A larger file is none that assay copied and the site moved."""


@dataclass(frozen=True, slots=True)
class SiteFiles:
    """The files of one fleet repository. Nothing outside of it is read, and no symbolic link is followed."""

    root: Path

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None where no file is."""
        place = self.root / path
        return place.read_bytes() if not self.find_obstacle(path) and place.is_file() else None

    def is_free(self, path: str) -> bool:
        """Return whether nothing is at a path, and a file can be written there."""
        return not self.find_obstacle(path) and not (self.root / path).exists()

    def find_obstacle(self, path: str) -> str:
        """Return what keeps assay from reading or writing a file at a path, "" if nothing does."""
        parts = PurePosixPath(path).parts
        for count in range(1, len(parts) + 1):
            place = self.root.joinpath(*parts[:count])
            kind, expected = _find_kind(place), "a file" if count == len(parts) else "a folder"
            if kind != expected:
                return kind and f"{'/'.join(parts[:count])} is {kind}"
        return ""

    def read_others(self, known: Iterable[str]) -> dict[str, bytes]:
        """Return the files that git tracks in the folders of known files, and that are none of these."""
        known = set(known)
        folders = sorted({PurePosixPath(path).parts[0] for path in known if "/" in path})
        run = self.run_git("ls-files", "-z", "--", *folders)
        paths = [path for path in run.split("\0") if path and path not in known and not path.startswith(f"{FOLDER}/")]
        return {path: content for path in paths if (content := self._read_small(path)) is not None}

    def read_python(self, known: Iterable[str]) -> dict[str, bytes]:
        """Return the Python files that git tracks, and that are none of these."""
        paths = {path for path in self.run_git("ls-files", "-z").split("\0") if path.endswith(".py")}
        return {path: text for path in sorted(paths - {*known}) if (text := self._read_small(path)) is not None}

    def list_uncommitted(self, paths: Iterable[str]) -> list[str]:
        """Return those paths whose file is not committed as it stands: changed, untracked, ignored or in conflict."""
        wanted = sorted(set(paths))
        if not wanted:
            return []
        options = ("--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored")
        prefix = self.run_git("rev-parse", "--show-prefix").strip("\n")
        told = self.run_git("status", *options, "--", *wanted).split("\0")
        return sorted({line[3:].removeprefix(prefix) for line in told if line})

    def is_clean(self) -> bool:
        """Return whether everything in the repository is committed, but for what git ignores."""
        return not self.run_git("status", "--porcelain")

    def require_no_conflicts(self) -> None:
        """Raise AssayError while conflicts of a merge, or of an earlier upgrade, are open."""
        found = self.run_git("diff", "--name-only", "--diff-filter=U", "--relative", "-z").split("\0")
        if paths := sorted({path for path in found if path}):
            fix = "choose between the marked lines, `git add` the files, commit, then again"
            raise AssayError(f"conflicts are open: {format_list(paths)}", where=str(self.root), fix=fix)

    def run_git(self, *command: str, stdin: bytes = b"") -> str:
        """Return what a git command prints. Raises AssayError if git refuses."""
        run = run_git(self.root, "--literal-pathspecs", *command, stdin=stdin)
        if run.returncode:
            fix = "a fleet is upgraded in git, so that you see each change and can take it back"
            raise AssayError(f"git {command[0]} failed: {read_git_error(run)}", where=str(self.root), fix=fix)
        return run.stdout.decode("utf-8", "surrogateescape")

    def _read_small(self, path: str) -> bytes | None:
        place = self.root / path
        is_small = not self.find_obstacle(path) and place.is_file() and place.stat().st_size <= MOST_BYTES
        return place.read_bytes() if is_small else None


def _find_kind(place: Path) -> str:
    """Return what is at a place, "" if nothing is."""
    try:
        mode = place.lstat().st_mode
    except FileNotFoundError:
        return ""
    kinds = {stat.S_IFREG: "a file", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a symbolic link"}
    return kinds.get(stat.S_IFMT(mode), "a device")
