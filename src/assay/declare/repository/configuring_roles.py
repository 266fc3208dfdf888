"""The roles that `playbooks/configure.yml` names, with those of playbooks that it imports."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

import yaml

from assay.declare.repository.firmware_tasks import COLLECTION, PLAYBOOKS
from assay.declare.repository.repository_tree import MAX_FILE_BYTES, RepositoryTree

CONFIGURE_PLAYBOOK = f"{PLAYBOOKS}/configure.yml"
BRINGS = "assay_brings"
"""The variable by which a role of the site says which roles of `assay.fleet` it stands for."""
IMPORT = "import_playbook"


def list_configuring_roles(tree: RepositoryTree) -> set[str]:
    """Return the names of the roles of `assay.fleet` that the playbook names, and those that others stand for.

    A file that is missing or no YAML names none.
    """
    roles: set[str] = set()
    paths, read = [CONFIGURE_PLAYBOOK], set[str]()
    while paths:
        path = paths.pop()
        if path in read:
            continue
        read.add(path)
        for kind, word in _list_words(tree, path):
            if kind == IMPORT:
                paths.append(posixpath.normpath(posixpath.join(posixpath.dirname(path), word)))
            elif kind == BRINGS:
                roles.add(word)
            elif word.startswith(f"{COLLECTION}."):
                roles.add(word.removeprefix(f"{COLLECTION}."))
    return roles


def _list_words(tree: RepositoryTree, path: str) -> Iterator[tuple[str, str]]:
    """Yield each word of a YAML file with the key that it belongs to, as far as the key matters here."""
    key = ""
    try:
        text = tree.read(path, MAX_FILE_BYTES).decode("utf-8")
        for token in yaml.scan(text, Loader=yaml.CSafeLoader):
            if isinstance(token, yaml.KeyToken | yaml.BlockEndToken | yaml.FlowSequenceEndToken):
                key = ""
            elif isinstance(token, yaml.ScalarToken):
                word = str(token.value)
                yield key, word
                name = word.rpartition(".")[2]
                key = name if name in (BRINGS, IMPORT) else key
    except (OSError, ValueError, yaml.YAMLError):
        return
