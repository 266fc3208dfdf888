"""Files that a revision of git does not hold, that assay does not read, or that nobody has reviewed or owns.

CODEOWNERS is made from the owners of the specs.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.declare.check import RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.repository.git import DECLARED_FOLDERS, TOOL_PATHS, list_ignored_paths
from assay.declare.repository.tree import MAX_FILE_BYTES, MAX_LINKS, RepositoryTree, WorkingFolder, is_inside
from assay.declare.spec_reader import SpecFile
from assay.model.specs.spec_document import SPEC_KINDS, CodeOwners
from assay.model.text.lists import format_count, suggest_nearest

YAML_ENDINGS = (".yaml", ".yml")
SPECIAL_FILES = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
KIND_LINE = re.compile(rb'^[{\s]*"?kind"?\s*:\s*"?(?:%b)\b' % "|".join(SPEC_KINDS).encode(), re.MULTILINE)
KIND_BYTES = 4096
"""How much of a file is read to find its kind."""
CONFLICT = re.compile(rb"^<{7} .*?^={7}\r?$.*?^>{7} ", re.MULTILINE | re.DOTALL)
REVIEW_MARK = re.compile(rb"(?:^|\s)# review:")
SUITE_FILE = re.compile(r"(?:^|/)(?:test_\w+|conftest)\.py$")
FILE = "CODEOWNERS"
"""GitHub and GitLab both look for it here."""
HIDING_FILE = ".github/CODEOWNERS"
"""GitHub uses this one instead, if it is there."""
COMMAND = "assay specs codeowners"
HEAD = f"# Made by `{COMMAND}` from the owners of the specs: change those, and run it again."


@rule("ASY0230", "a link that leaves the repository")
def link_to_outside(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """What stands there changes without a commit: no plan shows it, and no signature covers it."""
    for path, full in _list_odd_files(draft):
        if full.is_symlink() and full.exists() and _leaves(draft.root, full):
            message = f"the link {path} leads to {full.readlink()}, outside of the repository"
            if is_inside(draft.root, full):
                message = f"the link {path} leads to {full.readlink()}: on another machine, this is another file"
            yield RuleFinding((path, 0, 0), message, "copy the file into the repository, or use a relative link in it")


@rule("ASY0231", "a file that cannot be read as one")
def unreadable_kind_of_file(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay skips it, so what it is meant to declare is missing."""
    for path, full in _list_odd_files(draft):
        if full.is_symlink() and not full.exists():
            message = f"the link {path} leads to {full.readlink()}, which is not there, or leads back to the link"
            yield RuleFinding((path, 0, 0), message, "correct the link, or remove it")
        elif full.is_symlink() and Path(os.path.realpath(full.parent)).is_relative_to(os.path.realpath(full)):
            message = f"the link {path} leads to a folder that it stands in"
            yield RuleFinding((path, 0, 0), message, "remove the link")
        elif not full.is_symlink():
            kind = SPECIAL_FILES.get(stat.S_IFMT(full.lstat().st_mode), "no file")
            yield RuleFinding((path, 0, 0), f"{path} is {kind}", "remove it, or make it a regular file")


@rule("ASY0232", "a file that looks like a spec and is not read")
def unread_spec(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay reads only .yaml and .yml in specs/. What stands in this file has no effect."""
    for path in draft.tree.files("specs"):
        if path.endswith(YAML_ENDINGS):
            continue
        ending = posixpath.splitext(path)[1]
        if ending.lower() in YAML_ENDINGS or _names_a_kind(draft, path):
            fix = "rename it to end with .yaml, or keep it outside of specs/"
            yield RuleFinding((path, 0, 0), f"{path} looks like a spec, but assay does not read it", fix)


@rule("ASY0233", "a file that is read here and ignored by git")
def ignored_declaration(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay uses it on this machine, and nobody else has it: no plan shows it, and no signature covers it."""
    if not isinstance(draft.tree, WorkingFolder):
        return
    read = {"inventory": set(draft.tree.files("inventory")), "specs": set(draft.tree.files("specs"))}
    for path in list_ignored_paths(draft.root):
        folder = path.partition("/")[0]
        is_yaml = path.endswith(YAML_ENDINGS)
        if (is_yaml and path in read.get(folder, {path})) or (folder == "suites" and SUITE_FILE.search(path)):
            message = f"git ignores {path}, and assay reads it"
            yield RuleFinding((path, 0, 0), message, "commit it (`git add -f`), or remove it")


@rule("ASY0249", "a conflict that nobody resolved")
def unresolved_conflict(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The file says what both sides of a merge say, so no program can read it: no playbook, suite or workflow runs."""
    folders = (*DECLARED_FOLDERS, *TOOL_PATHS)
    below = [path for folder in folders for path in draft.tree.files(folder)]
    for path in (*below, *TOOL_PATHS):
        try:
            content = draft.tree.read(path, MAX_FILE_BYTES)
        except OSError:
            continue
        for conflict in CONFLICT.finditer(content) if b"<<<<<<< " in content else ():
            message = "a conflict of a merge or an upgrade begins here"
            fix = "choose between the marked lines, and remove the marks"
            yield RuleFinding((path, content.count(b"\n", 0, conflict.start()) + 1, 0), message, fix)


@rule("ASY0260", "a drafted spec that nobody has reviewed to its end", severity="warning")
def unreviewed_draft(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A draft marks what it copied or guessed: the value may be that of another kind of node, or of none."""
    for path in draft.tree.files("specs"):
        marks = _list_marks(draft, path) if path.endswith(YAML_ENDINGS) else []
        if marks:
            others = f", the last in line {marks[-1]}" if marks[1:] else ""
            count = format_count(len(marks), "line")
            message = f"{count} with the mark `# review:`{others}: values that a draft copied or guessed"
            fix = "compare each with the hardware or its documents, then remove its mark"
            yield RuleFinding((path, marks[0], 0), message, fix)


def _list_marks(draft: RepositoryDraft, path: str) -> list[int]:
    """Return the numbers of the lines with a mark."""
    try:
        content = draft.tree.read(path, MAX_FILE_BYTES)
    except OSError:
        return []
    if b"# review:" not in content:
        return []
    return [number for number, line in enumerate(content.splitlines(), 1) if REVIEW_MARK.search(line)]


def _names_a_kind(draft: RepositoryDraft, path: str) -> bool:
    try:
        return KIND_LINE.search(draft.tree.read(path, KIND_BYTES)) is not None
    except OSError:
        return False


def _list_odd_files(draft: RepositoryDraft) -> list[tuple[str, Path]]:
    """Return every link and special file of the declared folders, sorted; nothing for a commit, which git reads."""
    if not isinstance(draft.tree, WorkingFolder):
        return []
    return [(path, draft.root / path) for folder in DECLARED_FOLDERS for path in sorted(_walk(draft.root, folder))]


def _walk(root: Path, folder: str) -> Iterator[str]:
    """Yield every entry below a folder that is neither a regular file nor a folder. Links are not followed."""
    full = root / folder
    if full.is_symlink():
        yield folder
    elif full.is_dir():
        with os.scandir(full) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    yield from _walk(root, path)
                elif not entry.is_file(follow_symlinks=False):
                    yield path


def _leaves(root: Path, full: Path) -> bool:
    """Whether a link, or a link that it leads to, has an absolute path or a place outside of the repository."""
    for _ in range(MAX_LINKS):
        if not full.is_symlink():
            break
        if full.readlink().is_absolute():
            return True
        full = full.parent / full.readlink()
    return not is_inside(root, full)


@rule("ASY0261", "an owner without a team", severity="warning", needs=(CodeOwners,))
def owner_without_team(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Nobody is asked to review a change of this file."""
    code_owners = find_code_owners(draft.specs)
    if code_owners is None:
        return
    teams = code_owners.spec.teams
    for entry in draft.specs:
        if entry.spec.owner and entry.spec.owner not in teams:
            yield _missing_team(entry.find_position(("owner",)), entry.spec.owner, code_owners)
    for path, owner in code_owners.spec.paths.items():
        if owner not in teams:
            yield _missing_team(code_owners.file.find_position(("paths", path)), owner, code_owners)


@rule("ASY0262", "a CODEOWNERS that is not of these specs", severity="warning", needs=(CodeOwners,))
def stale_code_owners(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The forge asks other people to review a change than those who own it."""
    # A fleet may have none, such as one without a forge: `assay specs codeowners --check` asks for it.
    code_owners = find_code_owners(draft.specs)
    if code_owners is None or draft.refused:
        return
    text = read_code_owners(draft.tree)
    if text is not None and text != format_code_owners(draft.specs):
        yield RuleFinding((FILE, 0, 0), f"{FILE} is not the one that the owners of the specs give", f"run: {COMMAND}")
    if read_code_owners(draft.tree, HIDING_FILE) is not None:
        yield RuleFinding((HIDING_FILE, 0, 0), f"GitHub reads {HIDING_FILE} and ignores {FILE}", "remove it")


class CodeOwnersFile:
    """The CodeOwners document of a fleet, and its file."""

    def __init__(self, spec: CodeOwners, file: SpecFile) -> None:
        self.spec, self.file = spec, file


def find_code_owners(specs: Sequence[SpecFile]) -> CodeOwnersFile | None:
    """Return the CodeOwners document that no other one extends; of several, the first; None if there is none."""
    known = [CodeOwnersFile(entry.spec, entry) for entry in specs if isinstance(entry.spec, CodeOwners)]
    extended = {candidate.spec.extends for candidate in known}
    return next((candidate for candidate in known if candidate.spec.name not in extended), None)


def format_code_owners(specs: Sequence[SpecFile]) -> str:
    """Return the text of CODEOWNERS; "" for a fleet without a CodeOwners document."""
    code_owners = find_code_owners(specs)
    if code_owners is None:
        return ""
    owners = dict(sorted(code_owners.spec.paths.items()))
    owners |= {f"/{entry.document.file}": entry.spec.owner for entry in specs}
    owners[f"/{FILE}"] = code_owners.spec.owner
    lines = []
    for path, owner in owners.items():
        pattern = "*" if path == "/" else path.replace(" ", "\\ ")  # `/` means every file
        if teams := code_owners.spec.teams.get(owner):
            lines.append(f"{pattern} {' '.join(teams)}")
    return "\n".join([HEAD, *lines]) + "\n"


def read_code_owners(tree: RepositoryTree, file: str = FILE) -> str | None:
    """Return the text of a CODEOWNERS of the repository, None if there is none."""
    try:
        return tree.read(file, MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _missing_team(place: tuple[str, int, int], owner: str, code_owners: CodeOwnersFile) -> RuleFinding:
    fix = suggest_nearest(owner, code_owners.spec.teams) or f"add it to `teams` in {code_owners.file.document.file}"
    return RuleFinding(place, f"the owner {owner} has no team in {code_owners.spec.name}", fix)
