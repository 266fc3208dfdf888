"""What judging would cost if nothing kept order: `python -m bench.floor FLEET EVIDENCE` calls every check in a loop.

It prints the CPU seconds of that loop. Arguments are made and evidence is read as for any slim item; no verdict,
outcome or report comes of it.
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


class Loop:
    """Runs the items of a session in pytest's place, and takes the time."""

    def __init__(self, shelf: EvidenceCache) -> None:
        self._shelf, self.cpu_s = shelf, 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Call every check."""
        began = time.process_time()
        for item in session.items:
            assert isinstance(item, SlimItem)
            trial = CheckContext(item.check.id, item.subject, item.node_name, self._shelf)
            with suppress(AssertionError):
                item.check.function(**item.check.recipe.make_arguments(trial))
        self.cpu_s = time.process_time() - began
        return True


if __name__ == "__main__":
    fleet, evidence = (Path(name).resolve() for name in sys.argv[1:])
    os.chdir(fleet)
    loop = Loop(EvidenceCache(evidence))
    words = ["-qq", "--import-mode=importlib", "-p", "no:cacheprovider", "suites", *PHASES, "--evidence", str(evidence)]
    pytest.main(words, plugins=[loop])
    print(json.dumps({"cpu_s": loop.cpu_s}))  # noqa: T201 — the answer
