"""Secrets that stand in the repository, where git would keep them for ever. No message repeats one.

What the repository must keep, and what it must not: files of credentials, and who may sign commits.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from assay.fleet import secret_detection
from assay.fleet.check import RuleFinding, rule
from assay.fleet.git import DECLARED_FOLDERS, find_tracked_paths
from assay.fleet.repository_draft import RepositoryDraft
from assay.fleet.secret_detection import SecretHint
from assay.fleet.yaml_document import YamlDocument
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.ticket_route import TicketRoute

SIGNER_LINE = re.compile(rb"^[^#\s]\S*\s.*\b(?:ssh|ecdsa|sk)-[\w.@-]+\s+AAAA", re.MULTILINE)
MAX_SIGNERS_BYTES = 1024 * 1024  # bytes of allowed_signers
REFERENCES = (("bmc_credentials",), ("agent_token",), ("metrics", "credentials"), ("metrics", "token"))


@rule(
    "ASY0095",
    "credentials in a file that git keeps",
    why="A reference to a secret is of no use where the secret itself is committed beside it.",
)
def tracked_credentials(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find files of credentials that belong to the repository."""
    first = _credential_files(draft)
    ours = {file for file in first if posixpath.normpath(file).split("/")[0] in DECLARED_FOLDERS}
    for file in sorted(ours | find_tracked_paths(draft.root, sorted(first.keys() - ours))):
        said = f"the credentials in {file} are part of the repository"
        yield RuleFinding(first[file](), said, "move the file out of it, and change what it holds")


def _credential_files(draft: RepositoryDraft) -> dict[str, Callable[[], tuple[str, int, int]]]:
    """Return every file below the repository that is to hold credentials, and how to find who first says so."""
    found: dict[str, Callable[[], tuple[str, int, int]]] = {}
    for host in draft.hosts:
        for way in REFERENCES:
            file = _nested_value(host.variables, *way, "file")
            if isinstance(file, str) and not file.startswith("/") and file not in found:
                found[file] = partial(host.find_position, way[0])
    for route in draft.specs_of_model(TicketRoute).values():
        file = route.credentials.file if route.credentials else ""
        if file and not file.startswith("/"):
            found.setdefault(file, partial(draft.find_position, f"TicketRoute/{route.name}"))
    return found


def _nested_value(variables: Any, *way: str) -> Any:
    """Return what stands at a path, None where nothing does."""
    for step in way:
        variables = variables.get(step) if isinstance(variables, Mapping) else None
    return variables


@rule(
    "ASY0096",
    "signed commits without signers",
    why="No commit could be accepted any more, not even the one that mends it.",
)
def missing_signers(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find policies that ask for signed commits and name a file of signers that is not there, or holds none."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        if policy.commits is None or not policy.commits.signed:
            continue
        path = policy.commits.allowed_signers
        place = draft.find_position(f"{policy.kind}/{policy.name}", "commits", "allowed_signers")
        fix = 'one line for each key: `who@site namespaces="git" ssh-ed25519 AAAA…`'
        if not path.startswith("specs/"):
            yield RuleFinding(place, f"{path} is not in specs/", "let it lie there, where changes to it are seen")
        elif not SIGNER_LINE.search(_read_file(draft, path)):
            yield RuleFinding(place, f"{path} names no key that may sign", fix)


def _read_file(draft: RepositoryDraft, path: str) -> bytes:
    try:
        return draft.tree.read(path, MAX_SIGNERS_BYTES)
    except OSError:
        return b""


FIX = "take it out, and refer to it: {env: NAME}, {file: PATH}, {command: [PROGRAM, …]} or !vault; then change it"
GROUP = ("hosts", "vars", "children")
VAULT = "__ansible_vault"
HARMLESS_VARIABLE = "hca_guids"  # three of four texts in an inventory, and their form leaves no room for a secret
WHY = "Git keeps it for ever, for everybody who can read the repository."


class SecretSighting(NamedTuple):
    """One secret: which rule finds it, where it is, and what can be said of it."""

    code: str
    document: YamlDocument
    path: tuple[Any, ...]
    what: str


_seen: WeakKeyDictionary[RepositoryDraft, list[SecretSighting]] = WeakKeyDictionary()


@rule("ASY0090", "a secret in plain text", why=WHY)
def plain_text_secret(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find variables that are named as secrets and hold a plain text."""
    yield from _secret_findings(draft, "ASY0090")


@rule("ASY0091", "a private key", why=WHY)
def committed_private_key(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find private key blocks."""
    yield from _secret_findings(draft, "ASY0091")


@rule("ASY0092", "a token of a known kind", why=WHY)
def committed_token(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find tokens that are known by their form."""
    yield from _secret_findings(draft, "ASY0092")


@rule("ASY0093", "a password in a URL", why="It also ends in the logs of whatever opens that URL.")
def password_in_url(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find `user:password@` in URLs."""
    yield from _secret_findings(draft, "ASY0093")


@rule("ASY0094", "a text that looks like a key", why=WHY)
def random_looking_secret(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find texts that look like chance, under names that make them suspicious."""
    yield from _secret_findings(draft, "ASY0094")


def _secret_findings(draft: RepositoryDraft, code: str) -> Iterator[RuleFinding]:
    if draft not in _seen:
        _seen[draft] = [
            found for document in _documents(draft) if _may_hold_secrets(document) for found in _find_secrets(document)
        ]
    for sighting in _seen[draft]:
        if sighting.code == code:
            place = (sighting.document.file, *sighting.document.place(sighting.path))
            yield RuleFinding(place, sighting.what, FIX)


def _documents(draft: RepositoryDraft) -> list[YamlDocument]:
    """Return every file that was read, each once, however many hosts have their variables from it."""
    found = {id(layer.document): layer.document for layer in draft.inventory.list_all_layers()}
    found |= {id(spec.document): spec.document for spec in draft.specs}
    return list(found.values())


def _may_hold_secrets(document: YamlDocument) -> bool:
    """Whether it is worth a close look. This is asked of every value of 10,000 nodes, so it keeps no account."""
    hints: dict[Any, SecretHint] = {}
    seen: set[Any] = set()
    waiting: list[Any] = [{"": document.data}]
    while waiting:
        one = waiting.pop()
        for name, value in one.items():
            if name not in hints:
                hints[name] = secret_detection.classify_name(str(name))
            if hints[name] and not _harmless(value):
                return True
            if isinstance(value, dict):
                waiting.append(value)
            elif isinstance(value, list) and name != HARMLESS_VARIABLE:
                _take_list(value, seen, waiting)
            elif isinstance(value, str):
                seen.add(value)
    everything = "\n".join(one for one in seen if isinstance(one, str))
    return any(needle in everything for needle in secret_detection.SHAPE_NEEDLES)


def _take_list(values: list[Any], seen: set[Any], waiting: list[Any]) -> None:
    """Take in a list: at once where it holds no containers, as nearly all do."""
    try:
        seen.update(values)
    except TypeError:
        waiting += [{"": value} for value in values]


def _harmless(value: Any) -> bool:
    """Whether a value of a telling name is a reference, or nothing that could be a secret."""
    if isinstance(value, dict):
        return VAULT in value or secret_detection.REFERENCE_NAMES.issuperset(value)
    return isinstance(value, bool | float | None) or (
        isinstance(value, str) and not secret_detection.is_plain_text(value)
    )


def _find_secrets(document: YamlDocument) -> Iterator[SecretSighting]:
    waiting: list[tuple[tuple[Any, ...], Any, SecretHint]] = [((), document.data, SecretHint.NOTHING)]
    while waiting:
        path, one, known = waiting.pop()
        if isinstance(one, dict) and VAULT not in one:
            is_group = any(isinstance(one.get(name), dict) for name in GROUP)
            waiting += [
                (
                    (*path, name),
                    value,
                    SecretHint.NOTHING
                    if is_group or _names_hosts(path)
                    else secret_detection.classify_child(name, known),
                )
                for name, value in one.items()
            ]
        elif isinstance(one, list):
            waiting += [((*path, index), value, known) for index, value in enumerate(one)]
        elif isinstance(one, str | int) and not isinstance(one, bool):
            sighting = _classify_value(document, path, one, known)
            if sighting is not None:
                yield sighting


def _names_hosts(path: tuple[Any, ...]) -> bool:
    """Whether the entries below are called after hosts or groups, whose names say nothing."""
    return bool(path) and path[-1] in ("hosts", "children")


def _classify_value(
    document: YamlDocument, path: tuple[Any, ...], value: str | int, known: SecretHint
) -> SecretSighting | None:
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    if isinstance(value, int):
        code = "ASY0090" if known is SecretHint.CERTAIN and "pass" in name.lower() else ""
        return SecretSighting(code, document, path, f"{name} holds a secret in plain text") if code else None
    shape = secret_detection.find_secret_shape(value)
    if shape is not None:
        code = {secret_detection.PRIVATE_KEY_SHAPE: "ASY0091", secret_detection.URL_PASSWORD_SHAPE: "ASY0093"}.get(
            shape, "ASY0092"
        )
        return SecretSighting(code, document, path, f"{name or 'this'} holds {shape.what}")
    if not secret_detection.is_secret(value, known, name):
        return None
    if known is SecretHint.CERTAIN:
        return SecretSighting("ASY0090", document, path, f"{name} holds a secret in plain text")
    return SecretSighting("ASY0094", document, path, f"{name} holds what looks like a key")
