"""What the repository must keep, and what it must not: files of credentials, and who may sign commits."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from assay.fleet.draft import Draft
from assay.fleet.git import DECLARED, tracked
from assay.fleet.rules.book import Finding, rule
from assay.model.policy import LifecyclePolicy
from assay.model.ticket_route import TicketRoute

SIGNER = re.compile(rb"^[^#\s]\S*\s.*\b(?:ssh|ecdsa|sk)-[\w.@-]+\s+AAAA", re.MULTILINE)
LARGEST = 1024 * 1024  # bytes of allowed_signers
REFERENCES = (("bmc_credentials",), ("agent_token",), ("metrics", "credentials"), ("metrics", "token"))


@rule(
    "ASY0095",
    "credentials in a file that git keeps",
    why="A reference to a secret is of no use where the secret itself is committed beside it.",
)
def kept_credentials(draft: Draft) -> Iterator[Finding]:
    """Find files of credentials that belong to the repository."""
    first = _files(draft)
    ours = {file for file in first if posixpath.normpath(file).split("/")[0] in DECLARED}
    for file in sorted(ours | tracked(draft.root, sorted(first.keys() - ours))):
        said = f"the credentials in {file} are part of the repository"
        yield Finding(first[file](), said, "move the file out of it, and change what it holds")


def _files(draft: Draft) -> dict[str, Callable[[], tuple[str, int, int]]]:
    """Return every file below the repository that is to hold credentials, and how to find who first says so."""
    found: dict[str, Callable[[], tuple[str, int, int]]] = {}
    for host in draft.hosts:
        for way in REFERENCES:
            file = _below(host.variables, *way, "file")
            if isinstance(file, str) and not file.startswith("/") and file not in found:
                found[file] = partial(host.place, way[0])
    for route in draft.of(TicketRoute).values():
        file = route.credentials.file if route.credentials else ""
        if file and not file.startswith("/"):
            found.setdefault(file, partial(draft.at, f"TicketRoute/{route.name}"))
    return found


def _below(variables: Any, *way: str) -> Any:
    """Return what stands at a path, None where nothing does."""
    for step in way:
        variables = variables.get(step) if isinstance(variables, Mapping) else None
    return variables


@rule(
    "ASY0096",
    "signed commits without signers",
    why="No commit could be accepted any more, not even the one that mends it.",
)
def no_signers(draft: Draft) -> Iterator[Finding]:
    """Find policies that ask for signed commits and name a file of signers that is not there, or holds none."""
    for policy in draft.of(LifecyclePolicy).values():
        if policy.commits is None or not policy.commits.signed:
            continue
        path = policy.commits.allowed_signers
        place = draft.at(f"{policy.kind}/{policy.name}", "commits", "allowed_signers")
        fix = 'one line for each key: `who@site namespaces="git" ssh-ed25519 AAAA…`'
        if not path.startswith("specs/"):
            yield Finding(place, f"{path} is not in specs/", "let it lie there, where changes to it are seen")
        elif not SIGNER.search(_content(draft, path)):
            yield Finding(place, f"{path} names no key that may sign", fix)


def _content(draft: Draft, path: str) -> bytes:
    try:
        return draft.tree.read(path, LARGEST)
    except OSError:
        return b""
