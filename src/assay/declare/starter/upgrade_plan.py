"""Decides what an upgrade does with each file: three texts of it → one, and the reason. Nothing is written.

git merges texts and finds moved files, since users know how it does both. Imports of assay's inner modules, which
earlier fleets made, are carried over to `assay.fleetkit`.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from assay.declare.repository.git import read_git_error, run_git
from assay.declare.starter.new_repository import is_of_site
from assay.declare.starter.starter_record import (
    KEPT_ONCE_CHANGED,
    SiteFiles,
    StarterRecord,
    format_record,
    hash_content,
    is_below,
    is_text,
    make_record,
)
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.text.lists import format_count
from assay.old_imports import NEW, list_old_modules

ALIKE = "80%"
"""How much of a moved file must be as it was. git's own half would take a spec of the site's for one of assay's."""
Status = Literal["unchanged", "updated", "merged", "kept", "conflict", "new", "removed"]
MOVED_STATUS: dict[Status, Status] = {"unchanged": "updated", "kept": "merged"}
DELETED = "you deleted it"
GONE = "assay no longer has it, and you never changed it"
YOURS = "you changed it, and assay did not"
REPLACED = "you wrote your own; assay's changes to it stay out"
CONTAINED = "it has assay's changes already"
UNMERGEABLE = "both sides changed it, and it is binary or generated; yours stays"
OWN_NOW = "assay no longer has it; you changed it, so it is your own now"
OWN_FILE = "assay has a file of this name too; yours stays"
CARRIED = "its imports of assay are from assay.fleetkit now"


class Labels(NamedTuple):
    """What stands beside the markers of a conflict."""

    ours: str
    base: str
    theirs: str


class MergedText(NamedTuple):
    """The text, and how many conflicts are marked in it."""

    text: bytes
    conflicts: int


def merge_texts(root: Path, ours: bytes, base: bytes, theirs: bytes, labels: Labels) -> MergedText:
    """Merge what two sides made of one text, in the conflict style that git is configured for in `root`.

    Raises AssayError if git cannot merge them.
    """
    with tempfile.TemporaryDirectory(prefix="assay-upgrade-") as folder:
        files = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for file, text in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(text)
        names = [word for label in labels for word in ("-L", label)]
        run = run_git(root, "merge-file", "-p", "-q", *names, *map(str, files))
    if not 0 <= run.returncode <= 127:
        raise AssayError(f"git merge-file failed: {read_git_error(run)}")
    return MergedText(run.stdout, run.returncode)


def find_moved(gone: Mapping[str, bytes], added: Mapping[str, bytes]) -> dict[str, str]:
    """Return the new path of each file that is gone from its old one and stands, much as it was, among those added."""
    if not gone or not added:
        return {}
    with tempfile.TemporaryDirectory(prefix="assay-upgrade-") as folder:
        for side, files in (("a", gone), ("b", added)):
            for path, content in files.items():
                file = Path(folder) / side / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        wanted = ("--no-index", "--name-status", "-z", f"--find-renames={ALIKE}", "--diff-filter=R", "-l0")
        run = run_git(Path(folder), "diff", "--no-ext-diff", *wanted, "a", "b")
    if run.returncode not in (0, 1):
        raise AssayError(f"git diff failed: {read_git_error(run)}")
    words = run.stdout.decode("utf-8", "surrogateescape").split("\0")
    return {old.partition("/")[2]: new.partition("/")[2] for old, new in zip(words[1::3], words[2::3], strict=False)}


@frozen
class FileChange:
    """What becomes of one file. `before` and `after` are its contents, None without a file.

    `old_path` is where a file stands that moves to `path`. `base` and `theirs` are the other two sides of a conflict.
    `is_followed`: the next upgrade takes assay's text of now as the base.
    """

    path: str
    status: Status
    reason: str = ""
    before: bytes | None = field(default=None, repr=False)
    after: bytes | None = field(default=None, repr=False)
    old_path: str = ""
    base: bytes | None = field(default=None, repr=False)
    theirs: bytes | None = field(default=None, repr=False)
    is_followed: bool = True
    source: str = ""

    @property
    def writes(self) -> bool:
        """Whether a file of the repository changes."""
        return self.before != self.after or bool(self.old_path)


@frozen
class UpgradePlan:
    """What an upgrade from one version to another does. `files` are the record's own, as they are written last."""

    before: StarterRecord
    version: str
    changes: tuple[FileChange, ...]
    files: Mapping[str, bytes] = field(repr=False)

    def select(self, *statuses: Status) -> list[FileChange]:
        """Return the changes with one of these statuses."""
        return [change for change in self.changes if change.status in statuses]

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be written, if only into the record."""
        return bool(self.list_touched() or self.files != format_record(self.before))

    def list_touched(self) -> list[str]:
        """Return the paths that applying writes or deletes, without the record's."""
        writing = [change for change in self.changes if change.writes]
        return [path for change in writing for path in (change.path, change.old_path) if path]


@frozen
class _Sides:
    """The three sides of an upgrade, and where files went on two of them."""

    site: SiteFiles
    base: StarterRecord
    theirs: Mapping[str, bytes]
    labels: Labels
    moved_by_site: Mapping[str, str]
    moved_by_assay: Mapping[str, str]


def make_upgrade_plan(site: SiteFiles, base: StarterRecord, version: str, theirs: Mapping[str, bytes]) -> UpgradePlan:
    """Return what becomes of each file that assay copied, or copies now. Raises AssayError if git cannot merge."""
    sides = _compare(site, base, version, theirs)
    changes = [_carry(change) for change in (*_follow(sides), *_add(sides))]
    changes = sorted([*changes, *_carry_own(site, changes)], key=lambda change: change.path)
    followed = {change.source for change in changes if change.is_followed}
    record = make_record(version, base.ci, {path: text for path, text in theirs.items() if path in followed})
    return UpgradePlan(base, version, tuple(changes), format_record(record))


def _compare(site: SiteFiles, base: StarterRecord, version: str, theirs: Mapping[str, bytes]) -> _Sides:
    gone = {path: text for path, text in base.texts.items() if site.is_free(path)}
    others = site.read_others({*base.hashes, *theirs}) if gone else {}
    dropped = {path: text for path, text in base.texts.items() if path not in theirs}
    added = {path: text for path, text in theirs.items() if path not in base.hashes and site.is_free(path)}
    labels = Labels("this fleet", f"assay {base.version}, as copied", f"assay {version}")
    return _Sides(site, base, theirs, labels, find_moved(gone, others), find_moved(dropped, added))


def _follow(sides: _Sides) -> Iterator[FileChange]:
    """Decide about the files that an earlier version copied."""
    for path, digest in sides.base.hashes.items():
        if is_of_site(path):
            continue
        source = path if path in sides.theirs else sides.moved_by_assay.get(path, "")
        here = sides.moved_by_site.get(path, path)
        ours, theirs = sides.site.read(here), sides.theirs.get(source)
        if ours is None:
            reason = sides.site.find_obstacle(here) or DELETED
            if theirs is not None:
                yield FileChange(here, "kept", reason, source=source)
            continue
        trio = _Trio(path, here, digest, sides.base.texts.get(path), ours, theirs)
        yield _make_change(trio, _decide(sides, trio), source)


def _make_change(trio: _Trio, verdict: _Verdict, source: str) -> FileChange:
    """Return the change of a file that is there. A file that assay moved, moves here too, unless the site moved it."""
    is_conflict = verdict.status == "conflict"
    status = verdict.status
    reason = verdict.reason
    moves = source not in ("", trio.path) and trio.here == trio.path
    if moves:
        status = MOVED_STATUS.get(status, status)
        reason = f"assay moved it from {trio.path}"
    elif trio.here != trio.path:
        reason = ", ".join(part for part in (reason, f"you moved it from {trio.path}") if part)
    return FileChange(
        source if moves else trio.here,
        status,
        reason,
        before=trio.ours,
        after=verdict.after,
        old_path=trio.here if moves else "",
        base=trio.base if is_conflict else None,
        theirs=trio.theirs if is_conflict else None,
        source=source,
        is_followed=trio.theirs is not None,
    )


class _Trio(NamedTuple):
    """One file on three sides: `path` once, `here` now. `base` is None if the record has only its hash."""

    path: str
    here: str
    digest: str
    base: bytes | None
    ours: bytes
    theirs: bytes | None


class _Verdict(NamedTuple):
    """What becomes of a file that is there."""

    status: Status
    after: bytes | None
    reason: str = ""


def _decide(sides: _Sides, trio: _Trio) -> _Verdict:
    """Return what becomes of a file by who changed it."""
    is_changed_here = hash_content(trio.ours) != trio.digest
    if trio.theirs is None:
        is_own = is_changed_here or trio.here != trio.path
        return _Verdict("kept", trio.ours, OWN_NOW) if is_own else _Verdict("removed", None, GONE)
    if trio.theirs == trio.ours:
        return _Verdict("unchanged", trio.ours)
    if not is_changed_here:
        return _Verdict("updated", trio.theirs)
    if hash_content(trio.theirs) == trio.digest:
        return _Verdict("kept", trio.ours, YOURS)
    if is_below(trio.path, KEPT_ONCE_CHANGED):
        return _Verdict("kept", trio.ours, REPLACED)
    return _merge(sides, trio, trio.theirs)


def _merge(sides: _Sides, trio: _Trio, theirs: bytes) -> _Verdict:
    """Merge what both sides changed."""
    if trio.base is None or not is_text(trio.ours) or not is_text(theirs):
        return _Verdict("conflict", trio.ours, UNMERGEABLE)
    merged = merge_texts(sides.site.root, trio.ours, trio.base, theirs, sides.labels)
    if merged.conflicts:
        return _Verdict("conflict", merged.text, f"{format_count(merged.conflicts, 'place')} that both sides changed")
    if merged.text == trio.ours:
        return _Verdict("kept", trio.ours, CONTAINED)
    return _Verdict("merged", merged.text)


def _add(sides: _Sides) -> Iterator[FileChange]:
    """Decide about the files that this version is the first to copy."""
    expected = {*sides.base.hashes, *sides.moved_by_assay.values()}
    folders = {PurePosixPath(path).parts[0] for path in sides.base.hashes if "/" in path}
    gone = {folder for folder in folders if not any(file.is_file() for file in (sides.site.root / folder).rglob("*"))}
    for path, text in sides.theirs.items():
        if path in expected:
            continue
        ours = sides.site.read(path)
        obstacle = sides.site.find_obstacle(path)
        if ours == text:
            yield FileChange(path, "unchanged", before=ours, after=ours, source=path)
        elif ours is not None or obstacle:
            yield FileChange(path, "kept", obstacle or OWN_FILE, before=ours, after=ours, is_followed=False)
        elif (folder := PurePosixPath(path).parts[0]) in gone:
            yield FileChange(path, "kept", f"you deleted {folder}/", source=path)
        else:
            yield FileChange(path, "new", after=text, source=path)


def _carry(change: FileChange) -> FileChange:
    """Carry the imports of a Python file to `assay.fleetkit`, and name those that a person has to change."""
    if not change.path.endswith(".py") or change.after is None:
        return change
    carried = carry_imports(change.after)
    if carried == (change.after, ()):
        return change
    remarks = [f"{change.path}:{line} {advice}" for line, advice in carried.left]
    status = change.status
    if carried.text != change.after:
        remarks.insert(0, CARRIED)
        status = "merged" if status in ("kept", "unchanged") else status
    return replace(change, status=status, after=carried.text, reason="; ".join(filter(None, [change.reason, *remarks])))


def _carry_own(site: SiteFiles, changes: Iterable[FileChange]) -> Iterator[FileChange]:
    """Carry the imports of the site's own Python files. Files without an old import are not spoken of."""
    known = [path for change in changes for path in (change.path, change.old_path)]
    for path, text in site.read_python(known).items():
        own = FileChange(path, "kept", before=text, after=text, is_followed=False)
        if (carried := _carry(own)) != own:
            yield carried


PUBLIC = {"assay", NEW, "assay.__version__"}
FROM = re.compile(rb"from[ \t]+([\w.]+)")


class CarriedImports(NamedTuple):
    """A file's text with its imports of old names carried over, and what is `left`: a line number and what to do."""

    text: bytes
    left: tuple[tuple[int, str], ...] = ()


class _InnerImport(NamedTuple):
    """A statement that imports these names of an inner module: all that fleets took of it, if it names none."""

    node: ast.Import | ast.ImportFrom
    module: str
    names: tuple[str, ...]


def carry_imports(text: bytes) -> CarriedImports:
    """Let a Python file import from `assay.fleetkit` what it took from inner modules of assay.

    Only the module's name in a `from` statement changes. Another spelling, or a name that is not in `assay.fleetkit`,
    is left for a person. A file that is no Python as it stands, such as one with a conflict, is left as it is.
    """
    if b"assay" not in text:
        return CarriedImports(text)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return CarriedImports(text)
    lines = text.splitlines(keepends=True)
    left = []
    inner = sorted(_list_inner_imports(tree), key=lambda statement: (statement.node.lineno, statement.node.col_offset))
    for statement in reversed(inner):  # from the end, since a new name moves what stands behind it
        if not _rewrite(lines, statement):
            left.append((statement.node.lineno, _advise(statement)))
    return CarriedImports(b"".join(lines), tuple(sorted(left)))


def _list_inner_imports(tree: ast.Module) -> Iterator[_InnerImport]:
    old = list_old_modules()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("assay.") and alias.name not in PUBLIC:
                    yield _InnerImport(node, alias.name, old.get(alias.name, ()))
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = tuple(alias.name for alias in node.names)
            if node.module == "assay":
                inner = [name for name in names if f"assay.{name}" not in PUBLIC]
                yield from (_InnerImport(node, f"assay.{name}", ()) for name in inner)
            elif node.module.startswith("assay.") and node.module not in PUBLIC:
                yield _InnerImport(node, node.module, names if names != ("*",) else old.get(node.module, ()))


def _rewrite(lines: list[bytes], statement: _InnerImport) -> bool:
    """Write the new module into a `from` statement of which every name is in it. Return whether that was so."""
    known = list_old_modules().get(statement.module, ())
    is_known = set(statement.names) <= set(known) and statement.node.names[0].name != "*"
    line, start = lines[statement.node.lineno - 1], statement.node.col_offset
    match = FROM.match(line, start)
    if not is_known or not match or match[1] != statement.module.encode():
        return False
    lines[statement.node.lineno - 1] = line[: match.start(1)] + NEW.encode() + line[match.end(1) :]
    return True


def _advise(statement: _InnerImport) -> str:
    known = [name for name in statement.names if name in list_old_modules().get(statement.module, ())]
    other = [name for name in statement.names if name not in known]
    new = [f"write `from {NEW} import {', '.join(known)}`"] if known else []
    moving = [f"{', '.join(other) or 'it'} may move with any version"] if other or not known else []
    return f"imports {statement.module}: {'; '.join([*new, *moving])}"
