"""`make test` names the files that cost too much CPU time, and says nothing of others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.forked_assay import measure_importer_s, run_assay
from tests.support.places import ROOT

RUN = """
import sys, pytest
sys.path.append({root!r})
from tests.support.cpu_budget import CpuBudget
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[CpuBudget(0.3)]))
"""
DEAR_CHILD = "import subprocess, sys\n\n\ndef test_it():\n    subprocess.run([sys.executable, '-c', {child!r}])\n"
CHILD = "import time\nwhile time.process_time() < 0.5: pass"


def test_a_file_beyond_its_budget_is_named_with_its_children_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "test_calm.py").write_text("import time\n\n\ndef test_it():\n    time.sleep(0.5)\n")
    (tmp_path / "test_dear.py").write_text(DEAR_CHILD.format(child=CHILD))
    command = [sys.executable, "-c", RUN.format(root=str(ROOT)), tmp_path, f"--rootdir={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    named = [line for line in done.stdout.splitlines() if "of CPU time" in line]
    assert [line.split()[0] for line in named] == ["test_dear.py"]
    assert "a file has 0.3 s" in named[0]


def test_what_forked_commands_cost_is_counted() -> None:
    run_assay("--version")
    before_s = measure_importer_s()
    for _ in range(3):
        run_assay("check", "--help")
    assert measure_importer_s() > before_s
