"""Lets the tests of this folder find the readers that they are about."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
