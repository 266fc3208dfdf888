"""Shares the fat trees of the fabric's own tests."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "fabric")]
