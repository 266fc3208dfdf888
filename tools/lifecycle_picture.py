"""The default policy as a picture: `python -m tools.lifecycle_picture > docs/lifecycle.svg`."""

from __future__ import annotations

import sys
from pathlib import Path

from assay.decide.state.policy_graph import draw_policy_svg
from assay.declare.loader import load_fleet

STYLE = """
  svg { --ink: #1f2328; --soft: #59636e; --paper: #ffffff; --box: #f6f8fa; --edge: #818b98;
        --service: #1a7f37; --service-ink: #ffffff; --out: #fff8c5; --out-edge: #9a6700; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #f0f6fc; --soft: #b1bac4; --paper: #0d1117; --box: #21262d; --edge: #8b949e;
          --service: #238636; --service-ink: #ffffff; --out: #3a2d0b; --out-edge: #d29922; }
  }
  .paper { fill: var(--paper); }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); text-anchor: middle; }
  .says { font-size: 12px; fill: var(--soft); paint-order: stroke; stroke: var(--paper); stroke-width: 5px; }
  .way { fill: none; stroke: var(--edge); stroke-width: 1.4; marker-end: url(#arrow); }
  #arrow path { fill: var(--edge); }
  .box { fill: var(--box); stroke: var(--edge); stroke-width: 1.4; }
  .service { fill: var(--service); stroke: var(--service); }
  .service + text { fill: var(--service-ink); font-weight: 600; }
  .out { fill: var(--out); stroke: var(--out-edge); }
  .final { stroke-dasharray: 4; }
"""

if __name__ == "__main__":
    sys.stdout.write(draw_policy_svg(load_fleet(Path()).policy, STYLE))
