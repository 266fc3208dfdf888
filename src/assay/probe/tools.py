"""Run one of the node's own tools and understand what it prints, whatever it says by its exit code."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence

from assay.model.reading import absent, failed
from assay.probe.files import Tree

NOTHING_MORE: Mapping[str, str] = {}


def read_tool(
    command: Sequence[str],
    allowed_s: float,
    understand: Callable[[str], Tree],
    settings: Mapping[str, str] = NOTHING_MORE,
) -> Tree:
    """Run `command`, found in PATH, and return what `understand` makes of its output (standard error among it).

    `settings` are added to the environment. Absent where the tool is not installed, failed where it does not end.
    """
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **settings},
            timeout=allowed_s,
            check=False,
        )
    except FileNotFoundError:
        return absent(f"{command[0]} is not installed")
    except subprocess.TimeoutExpired:
        return failed(f"{command[0]} did not end within {allowed_s:g} s")
    except OSError as error:
        return failed(f"{command[0]} could not be started: {error.strerror}")
    return understand(done.stdout.decode(errors="replace"))
