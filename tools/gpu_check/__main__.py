"""`make gpu-check`: ask a machine with a GPU what only it can answer, and write what it saw into a JSON document.

Exit codes: 0 all questions are answered, 1 some are not, 2 this machine has no GPU that JAX can use.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.gpu_check.child_runs import QuestionError, run_battery
from tools.gpu_check.questions import QUESTIONS, CheckSizes

NEEDS = """\
gpu-check needs a machine with an NVIDIA GPU and its driver, and JAX for CUDA:
  .venv/bin/pip install "jax[cuda12]"    # or jax[cuda13], as the driver allows
Then run it again. `--rehearse` runs every question on the CPU in small sizes: that proves the program, and no GPU."""
SMALL = CheckSizes(edge=64, block=1 << 12, battery="small")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the check. Raises SystemExit."""
    parser = argparse.ArgumentParser("make gpu-check", description=__doc__)
    parser.add_argument("out", type=Path, help="the document to write")
    parser.add_argument("--rehearse", action="store_true", help="on the CPU, in small sizes")
    parser.add_argument("--only", nargs="+", default=list(QUESTIONS), choices=list(QUESTIONS), metavar="QUESTION")
    options = parser.parse_args(arguments)
    try:
        run, _, _ = run_battery(["--seeds", "1", "--size", "small", "--tests", "gather"], {})
    except QuestionError as error:
        _refuse(str(error))
    if run["backend"] == "cpu" and not options.rehearse:
        _refuse(f"{run['engine']} finds no GPU here, only {run['driver']}")
    sizes = SMALL if options.rehearse else CheckSizes()
    now = datetime.now(UTC).isoformat()
    document: dict[str, Any] = {"ran_at": now, "machine": platform.node(), "run": run}
    document["answers"] = {name: _ask(name, sizes) for name in options.only}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    unanswered = [name for name, answer in document["answers"].items() if "failed" in answer]
    answered = f"{len(options.only) - len(unanswered)} of {len(options.only)} questions answered"
    _say(f"{answered} on {run['backend']}: {options.out}")
    sys.exit(1 if unanswered else 0)


def _ask(name: str, sizes: CheckSizes) -> Any:
    _say(f"{name} …")
    try:
        return QUESTIONS[name](sizes)
    except QuestionError as error:
        _say(f"{name}: {error}")
        return {"failed": str(error)}


def _refuse(reason: str) -> None:
    _say(f"{reason}\n{NEEDS}")
    sys.exit(2)


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 — for a person


if __name__ == "__main__":
    main()
