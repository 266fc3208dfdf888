"""DCGM's own matrix products on tensor cores, all GPUs at once: ubergemm, and dcgmproftester.

Both come with nvidia-dcgm 4, in a folder that is named after CUDA. The source of ubergemm is not public; its line is
recorded in Azure/ai-infrastructure-on-azure, gpu_validation.md.
"""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.load_tools.json_output import read_speed
from assay.node.load_tools.tool_call import LoadOrder, ToolOutput, call_tool
from assay.node.probe.gpu.gpu_list import DRIVER_LIST, count_gpus
from assay.node.probe.node_access import NodeRoot

DCGM_PLUGINS = "/usr/libexec/datacenter-gpu-manager-4/plugins"
CUDA_FOLDER = re.compile(r"cuda(\d+)")
TENSOR_ACTIVE = 1004  # DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
UBERGEMM_RATE = re.compile(r"^GFlops:\s*(\S+) GFlops\s*$", re.MULTILINE)
WORKER_RATE = re.compile(r"^Worker (\d+):\d+ ?\[\d+\]: .*\(\s*(\S+) gflops\)", re.MULTILINE)
WORKER_FAILED = re.compile(r"^.*(?:Test Failed|Worker.*(?:fail|error)|Error).*$", re.MULTILINE | re.IGNORECASE)


def run_ubergemm(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Multiply on every GPU at once, each in a process of its own."""
    gpus = count_gpus(root)
    if gpus == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    tool = find_plugin(root, "ubergemm")
    words = [tool, "-t", str(order.seconds)]

    def multiply(gpu: str) -> ReadingTree:
        return call_tool(words, order, parse_ubergemm, settings={"CUDA_VISIBLE_DEVICES": gpu})

    names = [str(gpu) for gpu in range(gpus)]
    with ThreadPoolExecutor(gpus) as workers:
        return {"devices": dict(zip(names, workers.map(multiply, names), strict=True))}


def find_plugin(root: NodeRoot, name: str) -> str:
    """Return the path of a program of DCGM for the newest CUDA, or its name if it is in PATH or nowhere."""
    if shutil.which(name):
        return name
    try:
        folders = [folder for folder in root.list_names(DCGM_PLUGINS) if CUDA_FOLDER.fullmatch(folder)]
    except OSError:
        return name
    for folder in sorted(folders, key=lambda folder: -int(folder[4:])):
        for place in (f"{DCGM_PLUGINS}/{folder}/updated/{name}", f"{DCGM_PLUGINS}/{folder}/{name}"):
            if root.exists(place):
                return root.local_path(place)
    return name


def parse_ubergemm(output: ToolOutput) -> ReadingTree:
    """Parse the last rate of one GPU: `gflops`."""
    rates = UBERGEMM_RATE.findall(output.stdout)
    if output.exit_code or not rates:
        return output.fail(f"ubergemm gave no rate; exit code {output.exit_code}")
    return {"gflops": read_speed(rates[-1])}


def run_dcgmproftester(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Keep the tensor cores of all GPUs busy, without DCGM's own judgement, which compares with its profiling."""
    if count_gpus(root) == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    names = (f"dcgmproftester{major}" for major in (14, 13, 12, 11))
    tool = next((found for name in names if (found := find_plugin(root, name)) != name or shutil.which(name)), None)
    if tool is None:
        return absent("dcgmproftester is not installed")
    words = [tool, "--no-dcgm-validation", "-t", str(TENSOR_ACTIVE), "-d", str(order.seconds)]
    return call_tool(words, order, parse_dcgmproftester)


def parse_dcgmproftester(output: ToolOutput) -> ReadingTree:
    """Parse the lines of the workers: the median of each GPU's rates, in `devices`."""
    rates: dict[str, list[float]] = {}
    for gpu, rate in WORKER_RATE.findall(output.stdout):
        seen = read_speed(rate).get("value")
        if seen is not None:
            rates.setdefault(gpu, []).append(seen)
    if output.exit_code or not rates:
        return output.fail(f"dcgmproftester gave no rate; exit code {output.exit_code}")
    if found := WORKER_FAILED.search(output.text):
        return failed(f"dcgmproftester: {found[0].strip()[:120]!r}")
    return {"devices": {gpu: {"gflops": value(median(seen))} for gpu, seen in rates.items()}}
