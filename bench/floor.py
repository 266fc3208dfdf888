"""The lower bound for judging: `python -m bench.floor FLEET EVIDENCE` calls every check in a plain loop.

Prints the CPU seconds of the loop. Arguments and evidence are as for any slim item, but there are no verdicts,
outcomes or reports.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from assay.harness.items.slim_items import SlimItem
from assay.harness.judging.evidence_cache import EvidenceCache
from assay.harness.judging.verdict import CheckContext
from bench.judged import PHASES


class TimedLoop:
    """A pytest plug-in that runs the items of a session itself, and measures the time."""

    def __init__(self, cache: EvidenceCache) -> None:
        self._cache, self.cpu_s = cache, 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Call every check."""
        start = time.process_time()
        for item in session.items:
            assert isinstance(item, SlimItem)
            context = CheckContext(item.check.id, item.subject, item.node_name, self._cache)
            with suppress(AssertionError):
                item.check.function(**item.check.recipe.make_arguments(context))
        self.cpu_s = time.process_time() - start
        return True


if __name__ == "__main__":
    fleet, evidence = (Path(name).resolve() for name in sys.argv[1:])
    os.chdir(fleet)
    loop = TimedLoop(EvidenceCache(evidence))
    words = ["-qq", "--import-mode=importlib", "-p", "no:cacheprovider", "suites", *PHASES, "--evidence", str(evidence)]
    pytest.main(words, plugins=[loop])
    print(json.dumps({"cpu_s": loop.cpu_s}))  # noqa: T201 — the answer
