"""Says who may sign commits from the merge on, and who may no longer."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator

from assay.decide.plan.fleet_revision import FleetRevision
from assay.decide.plan.other_change import OtherChange, list_all_pools, replace_control_characters
from assay.declare.repository.acting_files import list_text_lines

USUAL_PATH = "specs/allowed_signers"
KEY_TYPES = ("ssh-", "ecdsa-", "sk-")


def list_signer_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield each line of the allowed signers that is new, and each that is gone."""
    old_path, path = find_signers_path(before), find_signers_path(after)
    was, will = _list_lines(before, old_path), _list_lines(after, path)
    pools = list_all_pools(after)
    for text, number in will.items():
        if text not in was:
            what = f"{_describe_signer(text)} may sign commits"
            yield OtherChange("signer", what, f"{path}:{number}", pools, weakens=True)
    for text, number in was.items():
        if text not in will:
            what = f"{_describe_signer(text)} may sign commits no longer"
            yield OtherChange("signer", what, f"{old_path}:{number} before the change", pools)


def find_signers_path(revision: FleetRevision) -> str:
    """Return the file of the allowed signers, by its usual name if the policy asks for no signatures."""
    commits = revision.policy.commits
    return commits.allowed_signers if commits else USUAL_PATH


def _list_lines(revision: FleetRevision, path: str) -> dict[str, int]:
    text = revision.files.get(path, b"").decode("utf-8", "replace")
    return {line: number for number, line in list_text_lines(text)}


def _describe_signer(line: str) -> str:
    """Return names, options, key type and fingerprint, as `ssh-keygen -l` prints it."""
    words = replace_control_characters(line).split()
    at = next((number for number, word in enumerate(words) if word.startswith(KEY_TYPES)), len(words))
    options = f" ({' '.join(words[1:at])})" if at > 1 and at < len(words) else ""
    return f"{words[0]}{options} with {_describe_key(words[at : at + 2])}"


def _describe_key(words: list[str]) -> str:
    try:
        kind, key = words
        digest = hashlib.sha256(base64.b64decode(key, validate=True)).digest()
    except (ValueError, binascii.Error):
        return "a key that cannot be read"
    return f"{kind} SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
