"""`python -m assay.node.probe`: print this node's readings as one JSON document, on time even if a read hangs."""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

from assay.model.reading import ReadingTree
from assay.model.specs.load_parts import LOAD_PARTS
from assay.node.probe.devices.memory_modules import read_memory
from assay.node.probe.devices.network_adapters import read_bonds, read_hcas, read_nics
from assay.node.probe.devices.nvme import read_disks, read_drives
from assay.node.probe.devices.pci import read_aer, read_pci
from assay.node.probe.gpu.gpu_list import read_gpus
from assay.node.probe.host import SERVICES_S, read_file_systems, read_host, read_services, read_timekeeping
from assay.node.probe.isolated_reader import Area, gather_isolated
from assay.node.probe.kernel_log import KernelLogCursor, read_kernel_log
from assay.node.probe.named_settings import (
    ask_adapter_settings,
    ask_files,
    ask_reach,
    ask_tpm,
    ask_unit_settings,
    read_kernel,
    read_wiped_drives,
)
from assay.node.probe.node_access import LazyTree, NodeRoot, TimedQuestion

DEADLINE_S = 8.0
HELP_WIDTH = 120
SINGLE_QUESTION_S = 3.0  # for an area that is one question
MAX_MEMORY_BYTES = 512 * 2**20
KERNEL_ONLY = ("nic", "bond", "aer", "pci", "memory", "kernel_log")  # no tool, no firmware: these hardly ever hang
TRACE_AREAS = "host,gpu,hca,aer,memory,kernel_log"  # with a boot id, counters of errors, or a log
GPU_S = 6.0  # without persistence mode, NVML must first wake eight GPUs


def main() -> None:
    """Print `{"probe": TREE}`, and exit. With `--active`, `before` and `active` come first: `probe` is read after them.

    `before` holds the areas in which a load leaves traces, as they were before it.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a caller's SIG_IGN is inherited, and waitpid would then fail
    arguments = _parse_arguments()
    if arguments.active or arguments.burn_in:
        gc.enable()  # the script that brings the probe along pauses it, which is a tenth of a short probe
    root = NodeRoot(arguments.root)
    if arguments.burn_in:
        _answer(_ask_burn_in(root, arguments), arguments)
    document: ReadingTree = _load_node(root, arguments) if arguments.active else {}
    document["probe"] = _read_areas(root, arguments.since, arguments.deadline, arguments.areas, arguments)
    _answer(document, arguments)


def _answer(document: ReadingTree, arguments: argparse.Namespace) -> NoReturn:
    sys.stdout.write(json.dumps(document, indent=1 if arguments.pretty else None) + "\n")
    sys.stdout.flush()
    os._exit(0)  # no clean-up: a thread or a child may hang


def _ask_burn_in(root: NodeRoot, arguments: argparse.Namespace) -> ReadingTree:
    from assay.node.burnin.command import answer_burn_in

    declared = (arguments.load, arguments.load_tools)
    return {
        "burn_in": answer_burn_in(
            root, arguments.burn_in, arguments.plan, arguments.lines_since, declared, arguments.clock
        )
    }


def _parse_arguments() -> argparse.Namespace:
    wide = partial(argparse.HelpFormatter, width=HELP_WIDTH)  # asking for the terminal's width imports three modules
    parser = argparse.ArgumentParser("python -m assay.node.probe", description=__doc__, formatter_class=wide)
    parser.add_argument("--root", default="/", help="the node's file system")
    parser.add_argument(
        "--since",
        type=KernelLogCursor.parse,
        default=KernelLogCursor(),
        metavar="SEQ[@BOOT_ID]",
        help="kernel log cursor",
    )
    parser.add_argument("--areas", default="", metavar="LIST", help="read only these, such as host,gpu; default: all")
    parser.add_argument("--files", default="", metavar="PATHS", help="files whose SHA-256 to read, comma separated")
    parser.add_argument("--module-options", default="", metavar="NAMES", help="module.option, comma separated")
    parser.add_argument("--unit-settings", default="", metavar="NAMES", help="unit/Setting, comma separated")
    parser.add_argument("--adapters", default="", metavar="PLACE=NAME+NAME,…", help="firmware settings to read")
    parser.add_argument("--tpm", default="", metavar="owner", help="ask the TPM whether somebody owns it")
    parser.add_argument("--reach", default="", metavar="ADDRESS/PORT+…", help="ask which ports of the BMC answer here")
    parser.add_argument("--markers", default="{}", metavar="JSON", help="what a wipe wrote, by serial number")
    parser.add_argument("--active", default="", metavar="LIST", help=f"parts of a load: {','.join(LOAD_PARTS)}")
    parser.add_argument("--burn-in", default="", choices=("start", "read", "stop"), help="the day of load in this node")
    parser.add_argument("--plan", default="", metavar="JSON", help="what --burn-in start carries out")
    parser.add_argument("--clock", default="", metavar="FILE", help="--burn-in goes by the clock of this lab")
    parser.add_argument("--lines-since", default="", metavar="LOG:NUMBER", help="--burn-in tells the lines after this")
    parser.add_argument("--seconds", type=int, default=60, help="how long each active part loads the node")
    parser.add_argument("--load", default="", metavar="JSON", help="how assay-load is started here, as declared")
    parser.add_argument("--load-tools", default="", metavar="JSON", help="what is declared for the other load tools")
    parser.add_argument("--after-unit", default="", metavar="SEED:TEST", help="the battery goes on after this unit")
    parser.add_argument("--part-seconds", default="", metavar="PART=S,…", help="instead of --seconds, for some parts")
    parser.add_argument("--relay", action="store_true", help="print what a load finds as it comes, before the document")
    parser.add_argument("--at", default="", help="the caller's time now, ISO 8601")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="S", help="for the passive part")
    parser.add_argument("--pretty", action="store_true", help="indent the document")
    return parser.parse_args()


def _load_node(root: NodeRoot, arguments: argparse.Namespace) -> ReadingTree:
    from assay.node.load_tools.load_delivery import DECLARATION_VARIABLE, read_site_variables
    from assay.node.load_tools.registry import run_load
    from assay.node.load_tools.tool_call import LoadOrder, LoadRelay, SiteSettings

    if arguments.load:
        os.environ[DECLARATION_VARIABLE] = arguments.load
    try:
        site = SiteSettings.parse(arguments.load_tools)
    except (ValueError, TypeError) as error:
        sys.exit(f"--load-tools: {error}")
    before = _read_areas(root, arguments.since, arguments.deadline, TRACE_AREAS)
    log = before["kernel_log"]
    before["kernel_log"] = {"cursor": log["cursor"]} if "cursor" in log else log  # its lines are read again afterwards
    relay = LoadRelay(os.dup(1)) if arguments.relay else None  # readers close the standard output
    if relay:
        relay.tell(before=before)
    variables = {**read_site_variables(arguments.load), **site.environment}
    times = {}
    for entry in _split_names(arguments.part_seconds):
        part, _, seconds = entry.partition("=")
        times[part] = int(seconds)
    order = LoadOrder(arguments.seconds, variables, relay, arguments.after_unit, times, site)
    return {"before": before, "active": run_load(root, arguments.active.split(","), order, arguments.at)}


def _read_areas(
    root: NodeRoot, since: KernelLogCursor, deadline_s: float, chosen: str, named: argparse.Namespace | None = None
) -> ReadingTree:
    """Read the chosen areas, with the files and settings that the caller names."""
    files = _split_names(named.files if named else "")
    module_options = _split_names(named.module_options if named else "")
    adapters = named.adapters if named else ""
    unit_settings = _split_names(named.unit_settings if named else "")
    areas: dict[str, Area] = {
        "host": TimedQuestion(SINGLE_QUESTION_S, partial(read_host, root)),
        "gpu": TimedQuestion(GPU_S, partial(read_gpus, root)),
        "hca": partial(read_hcas, root),
        "nic": partial(read_nics, root),
        "bond": partial(read_bonds, root),
        "nvme": partial(read_drives, root),
        "disk": partial(read_disks, root),
        "aer": partial(read_aer, root),
        "pci": partial(read_pci, root),
        "memory": partial(read_memory, root),
        "file_systems": partial(read_file_systems, root),
        "kernel": partial(read_kernel, root, module_options),
        "time": partial(read_timekeeping, root),
        "services": TimedQuestion(SERVICES_S, read_services),
        "files": ask_files(root, files),
        "unit_settings": ask_unit_settings(unit_settings),
        "adapter_settings": ask_adapter_settings(root, adapters),
        "tpm": ask_tpm(named.tpm if named else ""),
        "bmc_network": ask_reach(named.reach if named else ""),
        "kernel_log": partial(read_kernel_log, root, since),
    }
    names = chosen.split(",") if chosen else list(areas)
    areas["diagnostics"] = _ask_diagnostics
    areas["drive_wipe"] = partial(read_wiped_drives, root, json.loads(named.markers if named else "{}"))
    if unknown := set(names) - set(areas):
        sys.exit(f"the probe has no area {', '.join(sorted(unknown))}; it has {', '.join(areas)}")
    with _memory_limit():
        return gather_isolated({name: areas[name] for name in names}, deadline_s, KERNEL_ONLY)


def _ask_diagnostics() -> LazyTree:
    from assay.node.probe.diagnostics import ask_reports

    return ask_reports()


def _split_names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


@contextmanager
def _memory_limit() -> Iterator[None]:
    """Limit readers to `MAX_MEMORY_BYTES`: a file or a driver may answer without end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    least = min((limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY), default=MAX_MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (min(MAX_MEMORY_BYTES, least), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


if __name__ == "__main__":
    main()
