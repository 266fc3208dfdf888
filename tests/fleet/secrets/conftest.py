"""Where the helpers of these tests lie."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "actions")]
