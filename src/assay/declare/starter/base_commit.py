"""Finds the base of a merge for a fleet repository without a record: a commit with the files as they were copied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.declare.repository.git import read_git_objects, resolve_commit
from assay.declare.starter.site_files import SiteFiles
from assay.declare.starter.starter_record import StarterRecord, make_record
from assay.model.errors import AssayError

COPIED_BY_EVERY_VERSION = "ansible.cfg"


def read_base_commit(site: SiteFiles, rev: str, copied: Mapping[str, bytes] | Iterable[str]) -> StarterRecord:
    """Return the record that the copy of these files would have left, as far as a commit has them.

    What else is in the commit may be the site's own. Raises AssayError if git does not know the commit.
    """
    commit = resolve_commit(site.root, rev)
    wanted, blobs = set(copied), {}
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
    what = "no record says what `assay init` copied: an earlier version made this fleet"
    if site.run_git("rev-parse", "--is-shallow-repository").strip() == "true":
        return AssayError(
            what, where=str(site.root), fix="`git fetch --unshallow`, then again: git's history is needed"
        )
    order = ("log", "--reverse", "--diff-filter=A", "--format=%h (%as, %an: %s)", "--")
    found = site.run_git(*order, COPIED_BY_EVERY_VERSION) if _has_commits(site) else ""
    if not found:
        return AssayError(what, where=str(site.root), fix="commit the files as `assay init` wrote them first")
    first = found.splitlines()[0]
    fix = (
        f"they came with commit {first}. If they were then as `assay init` wrote them: "
        f"`assay upgrade --base {first.partition(' ')[0]}`. What was edited before that commit would count as assay's"
    )
    return AssayError(what, where=str(site.root), fix=fix)


def _has_commits(site: SiteFiles) -> bool:
    return bool(site.run_git("rev-list", "--all", "--max-count=1").strip())
