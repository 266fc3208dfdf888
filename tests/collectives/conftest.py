"""Lets the tests of this folder import `searched_fabrics`, and what other folders have of fabrics."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fabric"), str(HERE.parent / "lab/fabric")]
