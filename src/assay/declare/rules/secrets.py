"""Secrets in the values of specs and inventory; who may sign; and what is an example only.

No message repeats a secret.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from assay.declare import secret_detection
from assay.declare.check import STAND_IN_CODE, RuleFinding, RuleFunction, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.repository.git import DECLARED_FOLDERS, find_tracked_paths
from assay.declare.secret_detection import (
    VAULT,
    SecretHint,
    may_hold_secrets,
)
from assay.declare.stand_ins import find_placeholders, find_spec_stand_ins
from assay.declare.yaml import YamlDocument
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.serving import AccessRules

SIGNER_LINE = re.compile(rb"^[^#\s]\S*\s.*\b(?:ssh|ecdsa|sk)-[\w.@-]+\s+AAAA", re.MULTILINE)
MAX_SIGNERS_BYTES = 1024 * 1024  # bytes of allowed_signers
REFERENCES = (("bmc_credentials",), ("agent_token",), ("metrics", "credentials"), ("metrics", "token"))
FIX = "remove it, and refer to it: {env: NAME}, {file: PATH}, {command: [PROGRAM, …]} or !vault; then change it"
GROUP = ("hosts", "vars", "children")
NOTHING = SecretHint.NOTHING
SHAPE_CODES = {secret_detection.PRIVATE_KEY_SHAPE: "ASY0091", secret_detection.URL_PASSWORD_SHAPE: "ASY0093"}
WHY = "Git keeps it for ever, for everybody who can read the repository."
_sightings: WeakKeyDictionary[RepositoryDraft, list[SecretSighting]] = WeakKeyDictionary()


@rule("ASY0095", "credentials in a file that git keeps")
def tracked_credentials(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A reference does not protect a secret if the secret is committed too."""
    references = _list_credential_files(draft)
    declared = {file for file in references if posixpath.normpath(file).split("/")[0] in DECLARED_FOLDERS}
    for file in sorted(declared | find_tracked_paths(draft.root, sorted(references.keys() - declared))):
        message = f"the credentials in {file} are part of the repository"
        yield RuleFinding(
            references[file](), message, "move the file out of the repository, and change the credentials"
        )


def _list_credential_files(draft: RepositoryDraft) -> dict[str, Callable[[], tuple[str, int, int]]]:
    """Return every credential file below the repository, with a function that finds its first reference."""
    files: dict[str, Callable[[], tuple[str, int, int]]] = {}
    for host in draft.hosts:
        for path in REFERENCES:
            given = _get_nested(host.variables, *path)
            for reference in given if isinstance(given, list) else [given]:
                file = _get_nested(reference, "file")
                if isinstance(file, str) and not file.startswith("/") and file not in files:
                    files[file] = partial(host.find_position, path[0])
    for spec, reference in _list_spec_references(draft):
        if reference.file and not reference.file.startswith("/"):
            files.setdefault(reference.file, partial(draft.find_position, spec))
    return files


def _list_spec_references(draft: RepositoryDraft) -> Iterator[tuple[str, CredentialReference]]:
    """Yield each spec (`Kind/name`) that refers to a secret, and the reference."""
    for route in draft.specs_of_kind("TicketRoute").values():
        if route.credentials:
            yield f"TicketRoute/{route.name}", route.credentials
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        access = policy.access or AccessRules()
        tokens = (token for visitor in access.visitors.values() for token in visitor.token)
        keys = (webhook.credentials for webhook in policy.notices.webhooks.values())
        for reference in (*tokens, *keys, *filter(None, [access.session_key])):
            yield f"LifecyclePolicy/{policy.name}", reference


def _get_nested(variables: Any, *path: str) -> Any:
    """Return the value at a path, None if there is none."""
    for step in path:
        variables = variables.get(step) if isinstance(variables, Mapping) else None
    return variables


@rule("ASY0096", "signed commits without signers")
def missing_signers(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay accepts no commit any more, not even one that corrects this."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        if policy.commits is None or not policy.commits.signed:
            continue
        path = policy.commits.allowed_signers
        place = draft.find_position(f"{policy.kind}/{policy.name}", "commits", "allowed_signers")
        fix = 'one line for each key: `who@site namespaces="git" ssh-ed25519 AAAA…`'
        if not path.startswith("specs/"):
            yield RuleFinding(place, f"{path} is not in specs/", "move it there, where changes to it are reviewed")
        elif not SIGNER_LINE.search(_read_file(draft, path)):
            yield RuleFinding(place, f"{path} has no key that may sign", fix)


def _read_file(draft: RepositoryDraft, path: str) -> bytes:
    try:
        return draft.tree.read(path, MAX_SIGNERS_BYTES)
    except OSError:
        return b""


class SecretSighting(NamedTuple):
    """One secret: the code of its rule, where it is, and a message that does not repeat it."""

    code: str
    document: YamlDocument
    path: tuple[Any, ...]
    message: str


def _secret_rule(code: str, why: str) -> RuleFunction:
    """Return the function that finds the secrets of one rule in the values of specs and inventory."""

    def find(draft: RepositoryDraft) -> Iterator[RuleFinding]:
        if draft not in _sightings:
            suspects = [document for document in _list_documents(draft) if may_hold_secrets(document.data)]
            _sightings[draft] = [sighting for document in suspects for sighting in _find_secrets(document)]
        for sighting in _sightings[draft]:
            if sighting.code == code:
                place = (sighting.document.file, *sighting.document.place(sighting.path))
                yield RuleFinding(place, sighting.message, FIX)

    find.__doc__ = why
    return find


for _code, _title, _why in (
    ("ASY0090", "a secret in plain text", WHY),
    ("ASY0091", "a private key", WHY),
    ("ASY0092", "a token of a known kind", WHY),
    ("ASY0093", "a password in a URL", "The password also gets into the logs of every program that opens this URL."),
    ("ASY0094", "a text that looks like a key", WHY),
):
    rule(_code, _title)(_secret_rule(_code, _why))


def _list_documents(draft: RepositoryDraft) -> list[YamlDocument]:
    """Return every file that was read, each once, however many hosts have variables from it."""
    documents = {id(layer.document): layer.document for layer in draft.inventory.list_all_layers()}
    documents |= {id(spec.document): spec.document for spec in draft.specs}
    return list(documents.values())


def _find_secrets(document: YamlDocument) -> Iterator[SecretSighting]:
    waiting: list[tuple[tuple[Any, ...], Any, SecretHint]] = [((), document.data, NOTHING)]
    while waiting:
        path, data, hint = waiting.pop()
        if isinstance(data, dict) and VAULT not in data:
            names_hosts = bool(path) and path[-1] in ("hosts", "children")  # their names say nothing about values
            is_group = names_hosts or any(isinstance(data.get(name), dict) for name in GROUP)
            waiting += [
                ((*path, name), value, NOTHING if is_group else secret_detection.classify_child(name, hint))
                for name, value in data.items()
            ]
        elif isinstance(data, list):
            waiting += [((*path, index), value, hint) for index, value in enumerate(data)]
        elif isinstance(data, str | int) and not isinstance(data, bool):
            sighting = _classify_value(document, path, data, hint)
            if sighting is not None:
                yield sighting


def _classify_value(
    document: YamlDocument, path: tuple[Any, ...], value: str | int, hint: SecretHint
) -> SecretSighting | None:
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    if isinstance(value, int):
        if hint is not SecretHint.CERTAIN or "pass" not in name.lower():
            return None
        return SecretSighting("ASY0090", document, path, f"{name} holds a secret in plain text")
    shape = secret_detection.find_secret_shape(value)
    if shape is not None:
        return SecretSighting(
            SHAPE_CODES.get(shape, "ASY0092"), document, path, f"{name or 'this'} holds {shape.label}"
        )
    if not secret_detection.is_secret(value, hint, name):
        return None
    if hint is SecretHint.CERTAIN:
        return SecretSighting("ASY0090", document, path, f"{name} holds a secret in plain text")
    return SecretSighting("ASY0094", document, path, f"{name} holds what looks like a key")


@rule(STAND_IN_CODE, "an example that stands in for your own", severity="notice")
def stand_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The lab works with it. What would use it on a real machine refuses."""
    seen = set[tuple[str, int, int]]()
    for key, file in draft.spec_files.items():
        for example in find_spec_stand_ins(file.spec):
            place = draft.find_position(key, *example.path)
            if place not in seen:  # what extends a document has its values, too
                seen.add(place)
                yield RuleFinding(place, example.message, example.fix)
    for host in draft.hosts:  # a pool may list all its nodes in a variable: lists of names are not looked through
        texts = {key: text for key, text in host.variables.items() if isinstance(text, str) or key == "node_network"}
        for example in find_placeholders(texts):
            place = host.find_position(*example.path)
            if place not in seen:
                seen.add(place)
                yield RuleFinding(place, f"{host.name}: {example.message}", example.fix)
