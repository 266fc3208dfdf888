"""CODEOWNERS, made from the owners of the specs; and the rules that find an owner without a team, and an old file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository.repository_tree import MAX_FILE_BYTES, RepositoryTree
from assay.declare.repository_check import RuleFinding, rule
from assay.declare.spec_reader import SpecFile
from assay.model.specs.spec_document import CodeOwners
from assay.model.text.text_lists import suggest_nearest

FILE = "CODEOWNERS"
"""GitHub and GitLab both look for it here."""
HIDING_FILE = ".github/CODEOWNERS"
"""GitHub uses this one instead, if it is there."""
COMMAND = "assay specs codeowners"
HEAD = f"# Made by `{COMMAND}` from the owners of the specs: change those, and run it again."


@rule(
    "ASY0261",
    "an owner without a team",
    why="Nobody is asked to review a change of this file.",
    severity="warning",
    needs=(CodeOwners,),
)
def owner_without_team(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find owners of specs and of paths that the CodeOwners document does not map to a team."""
    found = find_code_owners(draft.specs)
    if found is None:
        return
    teams = found.spec.teams
    for entry in draft.specs:
        if entry.spec.owner and entry.spec.owner not in teams:
            yield _missing_team(entry.find_position(("owner",)), entry.spec.owner, found)
    for path, owner in found.spec.paths.items():
        if owner not in teams:
            yield _missing_team(found.file.find_position(("paths", path)), owner, found)


@rule(
    "ASY0262",
    "a CODEOWNERS that is not of these specs",
    why="The forge asks other people to review a change than those who own it.",
    severity="warning",
    needs=(CodeOwners,),
)
def stale_code_owners(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find a CODEOWNERS that differs from the generated one, or that another one hides.

    A fleet may have none, such as one without a forge: `assay specs codeowners --check` asks for it.
    """
    found = find_code_owners(draft.specs)
    if found is None or not draft.is_complete():
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
    extended = {one.spec.extends for one in known}
    return next((one for one in known if one.spec.name not in extended), None)


def format_code_owners(specs: Sequence[SpecFile]) -> str:
    """Return the text of CODEOWNERS; "" for a fleet without a CodeOwners document."""
    found = find_code_owners(specs)
    if found is None:
        return ""
    owners = dict(sorted(found.spec.paths.items()))
    owners |= {f"/{entry.document.file}": entry.spec.owner for entry in specs}
    owners[f"/{FILE}"] = found.spec.owner
    lines = [
        f"{_escape(path)} {' '.join(found.spec.teams[owner])}"
        for path, owner in owners.items()
        if found.spec.teams.get(owner)
    ]
    return "\n".join([HEAD, *lines]) + "\n"


def read_code_owners(tree: RepositoryTree, file: str = FILE) -> str | None:
    """Return the text of a CODEOWNERS of the repository, None if there is none."""
    try:
        return tree.read(file, MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _escape(path: str) -> str:
    """Return a path as CODEOWNERS writes it. `/` means every file."""
    return "*" if path == "/" else path.replace(" ", "\\ ")


def _missing_team(place: tuple[str, int, int], owner: str, found: CodeOwnersFile) -> RuleFinding:
    fix = suggest_nearest(owner, found.spec.teams) or f"add it to `teams` in {found.file.document.file}"
    return RuleFinding(place, f"the owner {owner} has no team in {found.spec.name}", fix)
