"""`assay-load`, or `python -m assay.node.load`: compute on the devices of this node, and print a JSON line for each unit.

Exit codes: 0 done, 2 if the run cannot start, 3 stopped before its end.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from assay.node.load.command_line import parse_command_line
from assay.node.load.device_order import parse_order
from assay.node.load.engine import Engine, LoadError
from assay.node.load.engine_choice import EngineRequest, make_engine
from assay.node.load.ordered_run import run_order
from assay.node.load.run_lines import RunLines
from assay.node.load.training_nodes import ALONE, TrainingNodes, join_hosts, name_this_host


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the arguments say. Raises SystemExit."""
    options = parse_command_line(arguments)
    lines = RunLines(_keep_output())
    try:
        ended = run_order(options, _make_engine(options), lines)
    except (LoadError, ValueError) as error:
        print(f"assay-load: {error}", file=sys.stderr)  # noqa: T201 — for a person
        sys.exit(2)
    if ended == "stopped":
        os._exit(3)  # a device that hangs would hold up the end of its library
    sys.exit(0)


def _keep_output() -> TextIO:
    """Return standard output for our lines only: what libraries print there goes to standard error from now on."""
    own = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return own


def _make_engine(options: argparse.Namespace) -> Engine:
    order = parse_order(options.order)
    uuids = options.uuids.split(",") if options.uuids else []
    named = (options.engine, options.devices, order, uuids, options.kind, options.unit_seconds)
    return make_engine(EngineRequest(*named, _find_nodes(options)))


def _find_nodes(options: argparse.Namespace) -> TrainingNodes:
    if options.verb != "train":
        return ALONE
    if options.hosts:
        return join_hosts(options.hosts.split(","), options.coordinator, name_this_host())
    return TrainingNodes(options.coordinator, options.nodes, options.node)


if __name__ == "__main__":
    main()
