"""`python -m tools.manifests FILE`: render the chart, with the values that it comes with, to one file of manifests.

Runs in the environment of `requirements-deploy.lock`, which has Helm as a library.
"""

from __future__ import annotations

import sys
from pathlib import Path

import helm_python as helm  # type: ignore[import-not-found]  # of .venv-deploy

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"
VALUES = {"namespace": {"create": True}}
HEAD = "# Rendered from deploy/chart by `make manifests`: the three manifests of deploy/ in one.\n"


def render() -> str:
    """Return the manifests as one text, the namespace first."""
    with helm.Chart.load(str(CHART)) as chart:
        rendered: dict[str, str] = chart.render(VALUES, name="assay", namespace="assay")
    files = sorted(rendered.items(), key=lambda item: (not item[0].endswith("namespace.yaml"), item[0]))
    return HEAD + "---\n".join(text.strip() + "\n" for name, text in files if name.endswith(".yaml"))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render())
