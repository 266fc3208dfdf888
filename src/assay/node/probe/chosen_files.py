"""Reads the SHA-256 and the permissions of the files that the caller names: those that the node's spec declares."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from functools import partial

from assay.model.reading import ReadingTree, failed, value
from assay.node.probe.node_access import LazyTree, NodeRoot, leaf_for_error

MAX_FILE_BYTES = 2**20


def read_chosen_files(root: NodeRoot, paths: Sequence[str]) -> LazyTree:
    """Return the `files` branch, by path."""
    return {path: partial(_read_file, root, path) for path in paths}


def _read_file(root: NodeRoot, path: str) -> ReadingTree:
    """Return `sha256` and `mode` of a regular file. Opening another kind of file might wait without end."""
    try:
        descriptor = os.open(root.local_path(path), os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return leaf_for_error(path, error)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return failed(f"{path} is no regular file")
        content = os.read(descriptor, MAX_FILE_BYTES + 1)
    except OSError as error:
        return leaf_for_error(path, error)
    finally:
        os.close(descriptor)
    if len(content) > MAX_FILE_BYTES:
        return failed(f"{path} has more than {MAX_FILE_BYTES} bytes")
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    import hashlib  # loads OpenSSL: only where files are asked for

    return {"sha256": value(hashlib.sha256(content).hexdigest()), "mode": value(mode)}
