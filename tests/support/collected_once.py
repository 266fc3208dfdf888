"""Imports the tests once for all workers: each worker of xdist is a fork of one process that has imported them.

Imports are four fifths of what collecting costs. A worker still collects by itself, from modules that are there.
`test_collected_once.py` holds such workers against new ones.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
import threading
from collections.abc import Generator, Sequence

import pytest

from tests.support.forked_assay import ONE_THREAD, share_importer
from tests.support.forked_python import ForkingPopen, Spawner, serve, start_modules_by
from tests.support.places import ROOT


def fork_workers(config: pytest.Config) -> None:
    """Let xdist start its workers as forks from now on, where it starts any and the kernel can."""
    if not config.pluginmanager.hasplugin("dsession"):
        return
    os.environ.update(ONE_THREAD)
    if share_importer():
        line, other = socket.socketpair()
        with other:
            words = [sys.executable, "-m", __name__, str(config.invocation_params.dir), *config.args]
            process = ForkingPopen(words, stdin=other, cwd=ROOT)
        workers = Spawner(line)
        start_modules_by(lambda: workers)
        config.add_cleanup(process.wait)
        config.add_cleanup(workers.end)


class _PartlyImported:
    """Forgets what was imported only in part, which pytest leaves in `sys.modules`: the workers fail or skip there."""

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, pytest.CollectReport]:
        report = yield
        if not report.passed:  # no other: a conftest.py that workers import again starts their processes its own way
            partly = {str(collector.path), str(collector.path / "conftest.py")}
            for name, module in list(sys.modules.items()):
                if getattr(module, "__file__", None) in partly:
                    del sys.modules[name]
        return report


def main(folder: str, paths: Sequence[str]) -> None:
    """Import the tests that are named in `folder`, then fork a worker for each request.

    A test that cannot be imported fails in the workers.
    """
    os.chdir(folder)
    line = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "r+") as nothing, contextlib.redirect_stdout(nothing):  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
        pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *paths], plugins=[_PartlyImported()])
    assert _count_threads() == 1, f"a module of the tests starts a thread: {threading.enumerate()}"
    gc.collect()
    gc.freeze()
    serve(line)


def _count_threads() -> int:
    """Return how many threads this process has, those of native modules too."""
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208 — names, nothing more


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
