"""Builds the stub `libnvidia-ml.so.1` with the system's C compiler, once per lab and version of the source."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from assay.ledger.file_locks import hold_file_lock

SOURCE = Path(__file__).with_name("stub.c")
SOURCES = sorted(SOURCE.parent.glob("*.[ch]"))
SONAME = "libnvidia-ml.so.1"
COMPILERS = ("cc", "gcc", "clang")
REPLAYED_NOTICE = "NVML: replayed, no C compiler found"
BUILD_DEADLINE_S = 60


def find_compiler() -> str | None:
    """Return the path of a C compiler, None if there is none."""
    return next((path for name in COMPILERS if (path := shutil.which(name))), None)


def build_stub(folder: Path) -> Path | None:
    """Return the stub library in `folder`, compiled if missing; None without a working compiler.

    Several processes may call it at once. Without the stub the lab replays NVML readings.
    """
    content = b"".join(source.read_bytes() for source in SOURCES)
    library = folder / hashlib.sha256(content).hexdigest()[:12] / SONAME
    if library.exists():
        return library
    compiler = find_compiler()
    if compiler is None:
        return None
    library.parent.mkdir(parents=True, exist_ok=True)
    with hold_file_lock(folder / "lock"):
        return library if library.exists() or _compile(compiler, library) else None


def _compile(compiler: str, library: Path) -> bool:
    scratch = library.with_name(f"{SONAME}.{os.getpid()}")
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", f"-Wl,-soname,{SONAME}"]
    command = [compiler, *flags, "-o", str(scratch), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, timeout=BUILD_DEADLINE_S, check=False)
    if done.returncode != 0 or not scratch.exists():
        return False
    scratch.replace(library)
    return True
