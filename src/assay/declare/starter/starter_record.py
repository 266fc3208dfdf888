"""Reads and writes what a fleet repository knows of the files that `assay init` or `assay upgrade` copied into it.

`record.json` names the version and the hash of each file. `texts.tar.gz` keeps the texts as they were copied: they are
the base of the next merge. Both are committed, so that any clone can merge, whatever became of git's history. For a
fleet repository without a record, a commit with the files as they were copied serves.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import stat
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path, PurePosixPath

from assay.declare.repository.git import read_git_error, read_git_objects, resolve_commit, run_git
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.text.lists import format_list

FOLDER = ".assay-starter"
RECORD, TEXTS = f"{FOLDER}/record.json", f"{FOLDER}/texts.tar.gz"
KEPT_ONCE_CHANGED = (
    "README.md",
    "requirements.txt",
    "suites/recordings/fabric-compute.json",
    "suites/recordings/fabric-ethernet.json",
    "suites/recordings/fleet",
    "suites/recordings/week-compute.json",
)
"""A site that changed one of these wrote its own: a merge would mix two things that have nothing in common."""
GENERATED = ("specs/schemas", "docs/reference", "docs/commands.md", "docs/checks.md", "docs/metrics.md")
"""Each version writes these anew. Their texts would be a third of the record, for merges that nobody wants."""
FORGES = ("github", "gitlab", "both")
TAKE_IT_BACK = f"take it from a commit in which it was whole: `git checkout COMMIT -- {FOLDER}`"
MOST_BYTES = 4 * 2**20
"""A larger file is none that assay copied and the site moved."""
COPIED_BY_EVERY_VERSION = "ansible.cfg"


@frozen
class StarterRecord:
    """The files of one version of assay, as they were copied: hashes by path, and those contents that are text."""

    version: str
    ci: str
    hashes: Mapping[str, str]
    texts: Mapping[str, bytes] = field(repr=False)


def make_record(version: str, ci: str, files: Mapping[str, bytes]) -> StarterRecord:
    """Return the record of these files. Of a file into which nothing will be merged, only the hash is kept."""
    hashes = {}
    texts = {}
    for path, content in sorted(files.items()):
        hashes[path] = hash_content(content)
        if is_text(content) and not is_below(path, (*KEPT_ONCE_CHANGED, *GENERATED)):
            texts[path] = content
    return StarterRecord(version, ci, hashes, texts)


def is_below(path: str, roots: Iterable[str]) -> bool:
    """Return whether a path is one of these, or lies in one of them."""
    return any(map(PurePosixPath(path).is_relative_to, roots))


def format_record(record: StarterRecord) -> dict[str, bytes]:
    """Return the files of a record by path. The same record gives the same bytes."""
    content = {"version": record.version, "ci": record.ci, "files": dict(record.hashes)}
    return {RECORD: f"{json.dumps(content, indent=1)}\n".encode(), TEXTS: _pack(record.texts)}


def read_record(root: Path) -> StarterRecord | None:
    """Return the record of a fleet repository, None if it has none. Raises AssayError if it is damaged."""
    place = root / RECORD
    try:
        content = json.loads(place.read_bytes())
        hashes = {str(path): str(digest) for path, digest in content["files"].items()}
        version, ci = str(content["version"]), content["ci"]
        if ci not in FORGES or not all(_is_inside(path) for path in hashes):
            raise ValueError("it names a forge or a path that assay never copied")
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress((root / TEXTS).read_bytes()))) as archive:
            texts = {member.name: file.read() for member in archive if (file := archive.extractfile(member))}
    except FileNotFoundError as error:
        if Path(str(error.filename)) == place:
            return None
        raise AssayError("the texts of the record are missing", where=TEXTS, fix=TAKE_IT_BACK) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, tarfile.TarError) as error:
        raise AssayError(f"the record cannot be read: {error}", where=FOLDER, fix=TAKE_IT_BACK) from error
    damaged = [path for path, text in texts.items() if hashes.get(path) != hash_content(text)]
    if damaged:
        raise AssayError(f"{damaged[0]} is not the text that the record names", where=TEXTS, fix=TAKE_IT_BACK)
    return StarterRecord(version, ci, hashes, texts)


def hash_content(content: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


def is_text(content: bytes) -> bool:
    """Return whether lines can be merged into a content: git's own rule, and UTF-8."""
    if b"\0" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and not {"..", ".git"}.intersection(parts)


def _pack(texts: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, text in texts.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return gzip.compress(buffer.getvalue(), mtime=0)


@frozen
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
            kind = _find_kind(place)
            expected = "a file" if count == len(parts) else "a folder"
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
        lines = self.run_git("status", *options, "--", *wanted).split("\0")
        return sorted({line[3:].removeprefix(prefix) for line in lines if line})

    def is_clean(self) -> bool:
        """Return whether everything in the repository is committed, but for what git ignores."""
        return not self.run_git("status", "--porcelain")

    def require_no_conflicts(self) -> None:
        """Raise AssayError while conflicts of a merge, or of an earlier upgrade, are open."""
        unmerged = self.run_git("diff", "--name-only", "--diff-filter=U", "--relative", "-z").split("\0")
        if paths := sorted({path for path in unmerged if path}):
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


def read_base_commit(site: SiteFiles, rev: str, copied: Mapping[str, bytes] | Iterable[str]) -> StarterRecord:
    """Return the record that the copy of these files would have left, as far as a commit has them.

    What else is in the commit may be the site's own. Raises AssayError if git does not know the commit.
    """
    commit = resolve_commit(site.root, rev)
    wanted = set(copied)
    blobs = {}
    for line in site.run_git("ls-tree", "-r", "-z", commit).split("\0"):
        facts, _, path = line.partition("\t")
        if path in wanted and facts.startswith("100"):
            blobs[path] = facts.split()[2]
    if not blobs:
        fix = "name a commit that has the files which `assay init` copied"
        raise AssayError(f"commit {commit[:12]} has no file of assay", where=str(site.root), fix=fix)
    contents = read_git_objects(site.root, sorted(set(blobs.values())))
    return make_record(f"at {commit[:12]}", find_ci(site), {path: contents[blob] for path, blob in blobs.items()})


def find_ci(site: SiteFiles) -> str:
    """Return whose workflows a repository has: github, gitlab or both."""
    has_gitlab = (site.root / ".gitlab-ci.yml").exists()
    return ("both" if (site.root / ".github").exists() else "gitlab") if has_gitlab else "github"


def describe_missing_record(site: SiteFiles) -> AssayError:
    """Return what to do with a fleet that an earlier version of assay made."""
    message = "no record says what `assay init` copied: an earlier version made this fleet"
    if site.run_git("rev-parse", "--is-shallow-repository").strip() == "true":
        return AssayError(
            message, where=str(site.root), fix="`git fetch --unshallow`, then again: git's history is needed"
        )
    order = ("log", "--reverse", "--diff-filter=A", "--format=%h (%as, %an: %s)", "--")
    has_commits = bool(site.run_git("rev-list", "--all", "--max-count=1").strip())
    commits = site.run_git(*order, COPIED_BY_EVERY_VERSION) if has_commits else ""
    if not commits:
        return AssayError(message, where=str(site.root), fix="commit the files as `assay init` wrote them first")
    first = commits.splitlines()[0]
    fix = (
        f"they came with commit {first}. If they were then as `assay init` wrote them: "
        f"`assay upgrade --base {first.partition(' ')[0]}`. What was edited before that commit would count as assay's"
    )
    return AssayError(message, where=str(site.root), fix=fix)
