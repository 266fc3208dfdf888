"""The words of `assay-load`. Numbers with which a run would do nothing are refused."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from assay.node.load.sizes import SIZES
from assay.node.load.workloads import NAMES

DESCRIPTION = "Compute on the devices of this node, and print a line of JSON for each unit."


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
