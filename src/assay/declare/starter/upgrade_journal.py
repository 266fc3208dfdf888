"""Writes an upgrade into a fleet repository, so that a kill at any point leaves something that the next call finishes.

All that will be written is first put into `.assay/upgrade`, which git ignores. Each file is then replaced in one step,
and only while it is as it was when the plan was made.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from assay.declare.starter.starter_record import SiteFiles, hash_content
from assay.declare.starter.upgrade_plan import UpgradePlan
from assay.model.errors import AssayError

STAGES = (1, 2, 3)
"""git's numbers for base, ours and theirs."""
PLACE = ".assay/upgrade"
JOURNAL = "journal.json"
GIVE_UP = f"delete {PLACE}, and take back with `git checkout HEAD -- FILE` what it wrote"


def find_broken_off(root: Path) -> str:
    """Return the version of an upgrade that was killed while it wrote, "" if there is none."""
    return str(_read_journal(root)["version"]) if (root / PLACE / JOURNAL).exists() else ""


def apply_upgrade(site: SiteFiles, plan: UpgradePlan) -> None:
    """Write what a plan says, the record last. The caller has the lock, and has refused what is not committed."""
    stage = site.root / PLACE
    scratch = site.root / f"{PLACE}.part"
    for folder in (stage, scratch):  # what a kill left: a journal that is there was looked for before
        shutil.rmtree(folder, ignore_errors=True)
    scratch.mkdir(parents=True)
    steps = list(_list_file_steps(plan))
    for path, content in plan.files.items():
        if (before := site.read(path)) != content:
            steps.append(_Step(path, before, content))
    for number, step in enumerate(steps):
        for side, text in step.contents.items():
            if text is not None:
                (scratch / f"{number}.{side}").write_bytes(text)
    (scratch / JOURNAL).write_text(json.dumps({"version": plan.version, "steps": [step.describe() for step in steps]}))
    os.sync()
    scratch.rename(stage)
    finish_upgrade(site)


def finish_upgrade(site: SiteFiles) -> list[str]:
    """Write what is left of an upgrade, and return the paths with a conflict.

    Raises AssayError if a file was changed since.
    """
    steps = _read_journal(site.root)["steps"]
    for number, step in enumerate(steps):
        _write_step(site, number, step)
    (site.root / PLACE / JOURNAL).unlink()  # first: a journal without its contents would be of no use
    shutil.rmtree(site.root / PLACE)
    return [step["path"] for step in steps if step["is_conflict"]]


class _Step(NamedTuple):
    """One file to write or delete, and the sides of a conflict in it."""

    path: str
    before: bytes | None
    after: bytes | None
    is_conflict: bool = False
    base: bytes | None = None
    ours: bytes | None = None
    theirs: bytes | None = None

    @property
    def contents(self) -> dict[str, bytes | None]:
        """What the journal keeps."""
        return {"after": self.after, "base": self.base, "ours": self.ours, "theirs": self.theirs}

    def describe(self) -> dict[str, Any]:
        """Return the line of the journal."""
        facts = {"path": self.path, "is_conflict": self.is_conflict}
        return facts | {"before": _hash(self.before), "after": _hash(self.after)}


def _list_file_steps(plan: UpgradePlan) -> Iterator[_Step]:
    for change in plan.changes:
        is_conflict = change.status == "conflict"
        sides = (change.base, change.before, change.theirs) if is_conflict else (None, None, None)
        if change.writes or is_conflict:
            before = None if change.old_path else change.before
            yield _Step(change.path, before, change.after, is_conflict, *sides)
        if change.old_path:
            yield _Step(change.old_path, change.before, None)


def _write_step(site: SiteFiles, number: int, step: dict[str, Any]) -> None:
    path = step["path"]
    now = _hash(site.read(path))
    if site.find_obstacle(path) or now not in (step["before"], step["after"]):
        fix = f"`git checkout HEAD -- {path}`, then again; or give this upgrade up: {GIVE_UP}"
        raise AssayError("the file was changed while the upgrade was under way", where=path, fix=fix)
    kept = {side: site.root / PLACE / f"{number}.{side}" for side in ("after", "base", "ours", "theirs")}
    if now != step["after"]:
        _replace(site.root, path, kept["after"] if step["after"] else None)
    if step["is_conflict"]:
        sides = [kept[side].read_bytes() if kept[side].exists() else None for side in ("base", "ours", "theirs")]
        mark_conflict(site, path, sides)


def mark_conflict(site: SiteFiles, path: str, sides: Sequence[bytes | None]) -> None:
    """Put base, ours and theirs of a conflict into the index, as `git merge` does. A side that is None is left out.

    So `git status` and `git mergetool` know of it, and `git commit` waits.
    """
    prefix = site.run_git("rev-parse", "--show-prefix").strip("\n")
    mode = "100755" if os.access(site.root / path, os.X_OK) else "100644"
    store = ("hash-object", "-w", "--stdin", f"--path={path}")
    blobs = ["" if side is None else site.run_git(*store, stdin=side).strip() for side in sides]
    nothing = "0" * max(map(len, blobs))
    lines = [f"0 {nothing}\t{prefix}{path}"]
    lines += [f"{mode} {blob} {stage}\t{prefix}{path}" for stage, blob in zip(STAGES, blobs, strict=True) if blob]
    site.run_git("update-index", "-z", "--index-info", stdin="".join(f"{line}\0" for line in lines).encode())


def _replace(root: Path, path: str, source: Path | None) -> None:
    """Put a copy of `source` in the place of a file, or delete the file and the folders that it leaves empty."""
    target = root / path
    if source is None:
        target.unlink()
        _delete_empty_folders(root, target.parent)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.upgrade")
    shutil.copyfile(source, scratch)
    if target.exists():
        shutil.copymode(target, scratch)
    with scratch.open("rb") as file:
        os.fsync(file.fileno())
    scratch.replace(target)


def _delete_empty_folders(root: Path, folder: Path) -> None:
    while folder != root:
        try:
            folder.rmdir()
        except OSError:  # something else is in it
            return
        folder = folder.parent


def _read_journal(root: Path) -> Any:
    try:
        return json.loads((root / PLACE / JOURNAL).read_bytes())
    except (OSError, ValueError) as error:
        fix = f"give this upgrade up: {GIVE_UP}"
        raise AssayError(f"the journal of an upgrade cannot be read: {error}", where=PLACE, fix=fix) from error


def _hash(content: bytes | None) -> str:
    return "" if content is None else hash_content(content)
