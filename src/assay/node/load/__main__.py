"""`assay-load`, or `python -m assay.node.load`: compute on this node's devices, and print a JSON line for each unit.

Exit codes: 0 done, 2 if the run cannot start, 3 stopped before its end. Numbers with which a run would do nothing are
refused.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
from collections.abc import Sequence

from assay.node.load.engine import Engine, LoadError, list_made_devices, parse_order
from assay.node.load.jax_engine import JaxMesh
from assay.node.load.run import ALONE, TrainingNodes, join_hosts, name_this_host, run_order
from assay.node.load.run_lines import RunLines
from assay.node.load.unit_tests import SIZES
from assay.node.load.workloads import NAMES

DESCRIPTION = "Compute on the devices of this node, and print a line of JSON for each unit."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the arguments say. Raises SystemExit."""
    options = parse_command_line(arguments)
    # Standard output is for our lines only: what libraries print there goes to standard error from now on.
    own_output = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines = RunLines(own_output)
    try:
        ended = run_order(options, _make_engine(options), lines)
    except (LoadError, ValueError) as error:
        print(f"assay-load: {error}", file=sys.stderr)  # noqa: T201 — for a person
        sys.exit(2)
    if ended == "stopped":
        os._exit(3)  # a device that hangs would hold up the end of its library
    sys.exit(0)


def _find_nodes(options: argparse.Namespace) -> TrainingNodes:
    if options.verb != "train":
        return ALONE
    if options.hosts:
        return join_hosts(options.hosts.split(","), options.coordinator, name_this_host())
    return TrainingNodes(options.coordinator, options.nodes, options.node)


def _make_engine(options: argparse.Namespace) -> Engine:
    """Return the engine, JAX where it is installed. Raises LoadError if it cannot be had here."""
    order, nodes = parse_order(options.order), _find_nodes(options)
    uuids = options.uuids.split(",") if options.uuids else []
    if options.engine == "jax" or (not options.engine and importlib.util.find_spec("jax")):
        from assay.node.load.jax_engine import JaxEngine

        return JaxEngine(JaxMesh(options.devices, order, uuids, options.kind, nodes), options.unit_seconds)
    if nodes.nodes > 1:
        raise LoadError("numpy trains on one node; say --engine jax")
    from assay.node.load.numpy_engine import NumpyEngine

    return NumpyEngine(list_made_devices(options.devices, order, uuids, options.kind))


def parse_command_line(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options. Raises SystemExit with code 2, and prints what to write, if they make no sense."""
    parser = argparse.ArgumentParser("assay-load", description=DESCRIPTION)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="battery|train")
    battery = verbs.add_parser("battery", help="compute many operations on all devices, and print digests")
    _add_common(battery)
    battery.add_argument("--seeds", type=parse_count, default=0, help="at most so many; 0: until the time is over")
    battery.add_argument("--tests", nargs="+", default=[], metavar="PATTERN", help="only these, such as gemm.float32")
    battery.add_argument("--after", default="", metavar="SEED:TEST", help="go on after this unit of an earlier run")
    train = verbs.add_parser("train", help="train a small model on all devices, and print losses and digests")
    train.add_argument("workload", choices=NAMES, help="alone on each device, data spread, or layers shared out")
    _add_common(train)
    train.add_argument("--steps", type=parse_count, default=0, help="at most so many; 0: until the time is over")
    train.add_argument(
        "--hosts", default="", metavar="LIST", help="that train together, in place of --nodes and --node"
    )
    train.add_argument("--nodes", type=parse_positive, default=1, help="how many nodes train together; default: 1")
    train.add_argument("--node", type=parse_count, default=0, help="which of them this is, from 0")
    train.add_argument("--coordinator", default="", metavar="HOST:PORT", help="where the first node listens")
    options = parser.parse_args(arguments)
    if options.verb == "train" and (wrong := _find_wrong_nodes(options)):
        train.error(wrong)
    return options


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=parse_seconds, default=60, help="how long; default: 60")
    parser.add_argument("--first-seed", type=parse_count, default=0, help="default: 0")
    parser.add_argument("--engine", choices=("jax", "numpy"), default="", help="default: JAX if it is installed")
    parser.add_argument("--size", choices=tuple(SIZES), default="", help="default: full on GPUs, small on a CPU")
    parser.add_argument(
        "--devices", type=parse_positive, default=8, metavar="N", help="that a CPU stands for; default: 8"
    )
    parser.add_argument("--order", default="", metavar="LIST", help="of the devices: such as 3,1,0,2, or shuffled")
    parser.add_argument("--uuids", default="", metavar="LIST", help="names of the devices that a CPU stands for")
    parser.add_argument("--kind", default="", help="what a CPU's devices are called")
    unit_help = "a unit without an answer for so long hangs; default: 60"
    parser.add_argument("--unit-seconds", type=parse_seconds, default=60, help=unit_help)
    parser.add_argument("--plant", nargs="+", default=[], metavar="FAULT", help="such as device=5,test=gemm,bit=3")


def _find_wrong_nodes(options: argparse.Namespace) -> str:
    if options.node >= options.nodes:
        return f"--node {options.node}: the nodes are 0 to {options.nodes - 1}, as --nodes says"
    if options.nodes > 1 and not options.coordinator:
        return f"--nodes {options.nodes}: add --coordinator HOST:PORT, where node 0 listens"
    return ""


def parse_count(text: str) -> int:
    """Return a whole number from 0. Raises ArgumentTypeError for anything else."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: write a whole number from 0")
    return int(text)


def parse_positive(text: str) -> int:
    """Return a whole number from 1. Raises ArgumentTypeError for anything else."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: write a whole number from 1")
    return int(text)


def parse_seconds(text: str) -> float:
    """Return a time in seconds. Raises ArgumentTypeError for none, for a negative one, and for one without an end."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: write a number of seconds above 0")
    return seconds


if __name__ == "__main__":
    main()
