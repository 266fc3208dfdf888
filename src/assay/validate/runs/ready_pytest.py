"""`python -m assay.validate.runs.ready_pytest`: a process that has imported what a shard needs, and waits to be one."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

import assay.validate.items.suite_hooks  # noqa: F401 — with pytest; the plugin imports it when it finds suites


def main() -> None:
    """Become the `python -m pytest` whose arguments, environment and log are in a line on stdin."""
    arguments, environment, log = json.loads(sys.stdin.readline() or sys.exit("the run has ended"))
    os.environ.update(environment)
    with Path(os.devnull).open() as nothing, Path(log).open("a") as out:
        for number, file in enumerate((nothing, out, out)):
            os.dup2(file.fileno(), number)
    sys.argv = ["pytest", *arguments]
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
