"""The measured programs, and the programs that they are compared with."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent

ASSAY = [str(BIN / "assay")]
CHECK = [*ASSAY, "check"]
PLAN = [*ASSAY, "plan", "--base", "HEAD"]
STATUS = [*ASSAY, "status"]
ANSIBLE = [str(BIN / "ansible-inventory"), "--list"]
PROBE = [sys.executable, "-m", "assay.node.probe"]
PYTHON = [sys.executable, "-c", "pass"]
