"""Keeps the probe's script beside Python's compiled modules: building it takes each process 0.2 CPU s, reading it 0.01.

The key covers what the script is made of. Where no compiled modules may be written, nothing is kept.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from assay.declare.cache_file_format import encode_sections, fingerprint_program, read_cache_file, write_cache_file

FOLDER = Path(importlib.util.cache_from_source(__file__)).parent / "probe_scripts"
MAX_FILES = 8
SCRIPT = "script"
SOURCE_ROOMS = ("model", "observe/transports", "probe")


def fetch_or_build(with_nvml: bool, build: Callable[[bool], bytes]) -> bytes:
    """Return the script of these sources, kept or built."""
    path = FOLDER / f"{_key(with_nvml)}.cache"
    kept = read_cache_file(path)
    if kept is not None:
        return kept.bytes(SCRIPT)
    script = build(with_nvml)
    if not sys.dont_write_bytecode:
        write_cache_file(path, encode_sections({SCRIPT: script}), MAX_FILES)
    return script


def _key(with_nvml: bool) -> str:
    """Return a digest of the state of the files that a script is made of."""
    spec = importlib.util.find_spec("pynvml")
    bindings = spec.origin if spec and spec.origin else ""
    status = Path(bindings).stat() if bindings else None
    made_of = (with_nvml, fingerprint_program(SOURCE_ROOMS), bindings, status and (status.st_mtime_ns, status.st_size))
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:32]
