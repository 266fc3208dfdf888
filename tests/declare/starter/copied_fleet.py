"""A small fleet in git, made of files that an older version of assay copied."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from assay.declare.starter.starter_record import SiteFiles, StarterRecord, format_record, make_record, read_record
from assay.declare.starter.upgrade_journal import apply_upgrade
from assay.declare.starter.upgrade_plan import FileChange, UpgradePlan, make_upgrade_plan

OLD, NEW = "0.0.9", "0.1.0"


class CopiedFleet:
    """A fleet repository, and what a site and assay do to its files."""

    def __init__(self, root: Path, copied: Mapping[str, str | bytes]) -> None:
        self.root, self.site = root, SiteFiles(root)
        self.copied = {path: encode(text) for path, text in copied.items()}
        self.git("init", "--quiet", "--initial-branch=main")
        self.write({**copied, ".gitignore": ".assay/\n", "inventory/pool.yml": "ours\n"})
        self.write(format_record(make_record(OLD, "github", self.copied)))
        self.commit("as copied")

    def git(self, *words: str) -> str:
        by = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run([*by, *words], check=True, capture_output=True, text=True).stdout

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Write files; None deletes one."""
        for path, text in files.items():
            place = self.root / path
            if text is None:
                place.unlink()
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(encode(text))

    def change(self, files: Mapping[str, str | bytes | None]) -> None:
        """Let the site change files, and commit."""
        self.write(files)
        self.commit("the site's")

    def record(self) -> StarterRecord:
        found = read_record(self.root)
        assert found
        return found

    def plan(self, theirs: Mapping[str, str | bytes]) -> UpgradePlan:
        return make_upgrade_plan(self.site, self.record(), NEW, {path: encode(text) for path, text in theirs.items()})

    def upgrade(self, theirs: Mapping[str, str | bytes]) -> dict[str, FileChange]:
        """Upgrade to these files, and return what became of each path."""
        (self.root / ".assay").mkdir(exist_ok=True)
        plan = self.plan(theirs)
        apply_upgrade(self.site, plan)
        return {change.path: change for change in plan.changes}

    def read(self) -> dict[str, str]:
        """Return the files of the working tree, without the record."""
        paths = self.git("ls-files", "--cached", "--others", "--exclude-standard").split("\n")
        return {
            path: (self.root / path).read_text(errors="replace")
            for path in sorted(set(paths))
            if (self.root / path).is_file() and not path.startswith(".assay-starter/")
        }


def encode(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def lines(*some: object) -> str:
    return "".join(f"{one}\n" for one in some)
