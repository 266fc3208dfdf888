"""The load tools of GPUs on a virtual node: they print what the real ones would, from the node's state.

They run without site packages (`-S`) and start often: what few of them need is imported late.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from assay.lab.tools.state_reader import State, find_state_file, load_node_state, print_lines, working_gpus

NCCL_SIZES = [2**30 * step for step in (1, 2, 4, 8)]
FLOAT = 4
NCCL_HALF = "     time   algbw   busbw #wrong"
NCCL_UNITS = "     (us)  (GB/s)  (GB/s)       "
NCCL_HEADER = (
    f"#{'out-of-place':>74}{'in-place':>31}",
    f"#       size         count      type   redop    root{NCCL_HALF}{NCCL_HALF}",
    f"#        (B)    (elements)                          {NCCL_UNITS}{NCCL_UNITS}",
)
NCCL_ERROR = 3
DCGM_LEVELS = {
    "software": 1,
    "memory": 2,
    "pcie": 2,
    "diagnostic": 3,
    "nvbandwidth": 3,
    "eud": 3,
    "memory_bandwidth": 3,
    "targeted_stress": 3,
    "targeted_power": 3,
    "memtest": 4,
    "pulse_test": 4,
}
"""The level of `dcgmi diag` from which on a test runs."""
DCGM_CATEGORIES = {"software": "Deployment", "pcie": "Integration"}
DCGM_SKIPPED = ("eud",)  # a package of its own
DCGM_FAILED_TEST = 226
DCGM_NO_TEST = 198
DCGM_VERSION = "4.5.2"
PROFTESTER_REPORTS = 3
BURN_ITERATIONS = 28_000
TENSOR_CORE_FACTOR = 10  # of gpu-burn -tc; roughly, as half precision is to FP32 on an H100
FRYER_TOLERANCE = 0.9


def run_all_reduce_perf(words: list[str]) -> None:
    """Print the table of nccl-tests for as many GPUs as `-g` says; `-J FILE` also writes the report."""
    if "-h" in words:
        print_lines(["USAGE: all_reduce_perf", "\t[-g,--ngpus <gpus per thread>]", "\t[-J,--output_file <file>]"])
        return
    state = load_node_state()
    requested = int(words[words.index("-g") + 1]) if "-g" in words else 1
    if "-J" in words and requested <= len(working_gpus(state)):
        with open(words[words.index("-J") + 1], "w") as file:  # noqa: PTH123 — pathlib costs start-up time
            json.dump(_make_nccl_report(state), file)
    print_lines(_format_bandwidth_table(state, requested))
    sys.exit(NCCL_ERROR if requested > len(working_gpus(state)) else int(int(state["active"]["wrong"]) > 0))


def _format_bandwidth_table(state: State, requested: int) -> Iterator[str]:
    """Yield the output of a run over `requested` GPUs. NCCL fails if CUDA sees fewer."""
    gpus = working_gpus(state)
    if requested > len(gpus):
        counts = f"asked for {requested} GPUs, {len(gpus)} visible"
        yield f"Test NCCL failure common.cu:1015 'invalid device ordinal': {counts}"
        return
    bandwidth = float(state["active"]["bus_bandwidth_gb_s"])
    algorithm = bandwidth / max(1.0, 2 * (requested - 1) / requested)
    wrong = int(state["active"]["wrong"])
    sizes = f"minBytes {NCCL_SIZES[0]} maxBytes {NCCL_SIZES[-1]}"
    yield "# Collective test starting: all_reduce_perf"
    yield f"# nThread 1 nGpus {requested} {sizes} step: 2(factor) iters: 20 validation: 1"
    yield "#"
    yield "# Using devices"
    for rank, gpu in enumerate(gpus):
        bus = gpu["pci"].split(":")[1]
        yield f"#  Rank  {rank} Group  0 Pid  4242 on {state['name']:>10} device  {rank} [0x{bus}] {gpu['name']}"
    yield "#"
    yield from NCCL_HEADER
    for size in NCCL_SIZES:
        half = f"{size / max(algorithm, 1e-9) / 1e3:8.1f} {algorithm:7.2f} {bandwidth:7.2f}"
        size_wrong = wrong if size == NCCL_SIZES[0] else 0
        yield f"{size:12} {size // FLOAT:13}     float     sum      -1 {half} {size_wrong:6} {half} {0:6}"
    yield f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"
    yield f"# Avg bus bandwidth    : {bandwidth:g}"
    yield "#"
    yield "# Collective test concluded: all_reduce_perf"


def _make_nccl_report(state: State) -> dict[str, Any]:
    """Return the document of `-J`: as in the real one, with the whole environment, and truth values as text."""
    bandwidth = float(state["active"]["bus_bandwidth_gb_s"])
    wrong = int(state["active"]["wrong"])
    rows = []
    for size in NCCL_SIZES:
        half = {"bus_bw": bandwidth, "nwrong": float(wrong if size == NCCL_SIZES[0] else 0)}
        rows.append({"size": size, "out_of_place": half, "in_place": {**half, "nwrong": 0.0}})
    return {
        "version": 3,
        "env": [f"{name}={value}" for name, value in os.environ.items()],
        "results": rows,
        "out_of_bounds": {"count": wrong, "okay": "false" if wrong else "true"},
        "average_bus_bandwidth": {"bandwidth": bandwidth, "okay": "unchecked"},
    }


def run_dcgmi(words: list[str]) -> None:
    """Print the document of `diag -r LEVEL -j` or `mndiag -j` of DCGM 4. End with 226 if a test failed, as it does."""
    state = load_node_state()
    if words[:1] == ["mndiag"]:
        document = _make_rack_diagnosis(state)
    elif words[:1] == ["health"]:
        document = _check_health(state)
    elif words[:1] == ["diag"] and words[words.index("-r") + 1] in ("1", "2", "3", "4"):
        document = _make_diagnosis(state, int(words[words.index("-r") + 1]))
    else:
        sys.exit(DCGM_NO_TEST)
    text = json.dumps(document, indent=1)
    print_lines([text])
    sys.exit(DCGM_FAILED_TEST if '"Fail"' in text else 0)


def _make_diagnosis(state: State, level: int) -> dict[str, Any]:
    tests = [_make_dcgm_test(state, name) for name, first in DCGM_LEVELS.items() if first <= level]
    categories = [{"category": DCGM_CATEGORIES.get(test["name"], "Hardware"), "tests": [test]} for test in tests]
    return {
        "DCGM Diagnostic": {"test_categories": categories},
        "entity_groups": [{"entities": list(_list_entities(state)), "entity_group": "GPU", "entity_group_id": 1}],
        "metadata": {"Driver Version Detected": state["driver"], "version": DCGM_VERSION},
    }


def _check_health(state: State) -> dict[str, Any]:
    """Return the document of `health --check --json`: what its watches saw of each GPU."""
    seen = {f"GPU {gpu['index']}": gpu["lost"] or not gpu["present"] for gpu in state["gpus"]}
    overall = {"value": "Failure" if any(seen.values()) else "Healthy"}
    children = {
        name: {"children": {"Errors": {"children": {"PCIe system": {"value": "Failure"}}}}, "value": "Failure"}
        for name, is_lost in seen.items()
        if is_lost
    }
    return {"header": ["Health Monitor Report"], "body": {"Overall Health": overall, **children}}


def write_bug_report(words: list[str]) -> None:
    """Write the report, packed part by part: the driver's files, the kernel's log, and what nvidia-smi says."""
    import gzip

    state, path = load_node_state(), words[words.index("--output-file") + 1]
    root = os.environ["ASSAY_ROOT"]
    parts = [["Start of NVIDIA bug report log file.  Please include this file, along with a detailed description"]]
    for name in ("/proc/cmdline", "/sys/module/nvidia/version", "/dev/kmsg"):
        with open(root + name) as file:  # noqa: PTH123 — pathlib costs start-up time
            parts.append(["_" * 44, "", f"*** {name}", *file.read().splitlines(), ""])
    for gpu in () if "--safe-mode" in words else working_gpus(state):
        fields = {"Serial Number": gpu["serial"], "GPU UUID": gpu["uuid"]}
        fields |= {"Process ID": gpu["pids"][0], "Name": "python3 train.py"} if gpu["pids"] else {}
        parts.append([f"GPU 0000{gpu['pci'].upper()}", *(f"    {name:<38}: {text}" for name, text in fields.items())])
    with open(f"{path}.gz", "ab") as file:  # noqa: PTH123 — pathlib costs start-up time
        for lines in parts:
            file.write(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    print_lines(["Running nvidia-bug-report.sh... complete."])


def _make_rack_diagnosis(state: State) -> dict[str, Any]:
    """Return the document of `mndiag`, with the results of this node. The title is below the key that DCGM 4 uses."""
    test = _make_dcgm_test(state, "mnubergemm")
    test["results"] = [{**result, "host_id": 0} for result in test["results"]]
    host = {"host_id": 0, "hostname": state["name"], "dcgm_version": DCGM_VERSION, "driver_version": state["driver"]}
    entities = list(_list_entities(state))
    return {
        "DCGM Diagnostic": "DCGM Multi-Node Diagnostic",
        "metadata": {"num_hosts": 1, "num_entities": len(entities)},
        "hosts": [{**host, "num_entities": len(entities), "entities": entities}],
        "test_categories": [{"category": "Stress", "tests": [{**test, "status": test["test_summary"]["status"]}]}],
    }


def _list_entities(state: State) -> Iterator[dict[str, Any]]:
    for index, gpu in enumerate(working_gpus(state)):
        group = {"entity_group": "GPU", "entity_group_id": 1}
        yield {**group, "device_id": "2330", "entity_id": index, "serial_num": gpu["serial"]}


def _make_dcgm_test(state: State, name: str) -> dict[str, Any]:
    faults: Mapping[str, Mapping[str, str]] = state["load"]["diagnosis"]
    results = []
    for index, gpu in enumerate(working_gpus(state)):
        fault = faults.get(str(gpu["index"]), {}).get(name)
        warnings = [{"error_category": 4, "error_id": 40, "error_severity": 3, "warning": fault}]
        status = "Fail" if fault else "Skip" if name in DCGM_SKIPPED else "Pass"
        result = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": index, "status": status}
        results.append({**result, "warnings": warnings} if fault else result)
    statuses = {result["status"] for result in results}
    worst = next((status for status in ("Fail", "Skip") if status in statuses), "Pass")
    return {"name": name, "results": results, "test_summary": {"status": worst}}


def run_dcgmproftester(words: list[str]) -> None:
    """Print the lines of `-t 1004`: one worker a GPU."""
    del words
    state = load_node_state()
    rates = [state["load"]["tensor_gflops"][gpu["index"]] for gpu in working_gpus(state)]
    lines = [
        f"Worker {index}:0[1004]: TensorEngineActive:  generated ???, dcgm 0.983 ({rate:#.3} gflops)."
        for _ in range(PROFTESTER_REPORTS)
        for index, rate in enumerate(rates)
    ]
    ends = [f"GPU {index}, TestField 1004 test PASSED." for index in range(len(rates))]
    print_lines([*lines, *ends] or ["Unable to find any GPU"])


def run_gpu_burn(words: list[str]) -> None:
    """Print the report, after the faults that the load provokes. Like the real one, it always exits 0."""
    if load_node_state().get("provoked"):
        import subprocess

        # Changing a node needs site packages, which tools do without.
        subprocess.run([sys.executable, "-m", "assay.lab.tools", "provoke-faults"], check=True)
    print_lines(_format_burn_report(load_node_state(), TENSOR_CORE_FACTOR if "-tc" in words else 1))


def _format_burn_report(state: State, factor: int) -> Iterator[str]:
    """Yield the output of a run over every GPU, `factor` times as fast as in FP32. One without `burn_ok` is wrong."""
    gpus = working_gpus(state)
    if not gpus:
        yield 'Couldn\'t init a GPU test: Error in "init": CUDA_ERROR_NO_DEVICE'
        return
    yield "Using compare file: compare.ptx"
    for index, gpu in enumerate(gpus):
        yield f"GPU {index}: {gpu['name']} (UUID: {gpu['uuid']})"
    rates = [factor * (gpu["burn_gflops"] - 40 * index) for index, gpu in enumerate(gpus)]
    work = " - ".join(f"{BURN_ITERATIONS} ({rate} Gflop/s)" for rate in rates)
    errors = " - ".join("0" if gpu["burn_ok"] else "312  (WARNING!)" for gpu in gpus)
    heat = " - ".join(f"{gpu['temperature_c'] + 30} C" for gpu in gpus)
    yield f"100.0%  proc'd: {work}   errors: {errors}   temps: {heat} "
    yield "Killing processes with SIGTERM (soft kill)"
    yield "done"
    yield ""
    yield f"Tested {len(gpus)} GPUs:"
    for index, gpu in enumerate(gpus):
        yield f"\tGPU {index}: {'OK' if gpu['burn_ok'] else 'FAULTY'}"


def plant_provoked_faults(words: list[str]) -> None:
    """Plant on the running node, once, what the fault `load.provokes` announced."""
    from pathlib import Path

    from assay.lab.faults.node_faults import gpu_xid
    from assay.lab.node.shell import write_uptime
    from assay.lab.world import LabWorld

    del words
    state_file = Path(find_state_file())
    world = LabWorld(state_file.parents[2])
    node = state_file.parent.name
    now = world.clock().now()
    with world.change(node) as state:
        for fault in state.pop("provoked", []):
            gpu_xid(state, now, **fault)
    write_uptime(world.folder(node), world.load(node), now)


def run_gpu_fryer(words: list[str]) -> None:
    """Print a line of results, and one of GPUs that are 10 % slower than the best; exit with 1 if there is one."""
    del words
    state = load_node_state()
    gpus = working_gpus(state)
    if not gpus:
        sys.stderr.write('{"message":"No GPUs detected"}\n')
        sys.exit(1)
    rates = [1e9 * state["load"]["tensor_gflops"][gpu["index"]] for gpu in gpus]
    results = [
        {"burn_result": {"gpu_idx": index, "flops_max": round(rate), "flops_min": round(rate)}, "flops_avg": rate}
        for index, rate in enumerate(rates)
    ]
    slow = [index for index, rate in enumerate(rates) if rate < FRYER_TOLERANCE * max(rates)]
    problems = [{"gpu_idx": index, "reason": "LowFlops"} for index in slow]
    lines = [{"type": "results", "gpus": results}, {"type": "problems", "problems": problems}]
    print_lines(json.dumps(line) for line in lines)
    sys.exit(1 if problems else 0)


def run_nvbandwidth(words: list[str]) -> None:
    """Print the document of `-j` for the tests after each `-t`. Like the real one, exit 0 for an unknown test."""
    state = load_node_state()
    tests = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "-t"]
    about = {"CUDA Runtime Version": 13000, "Driver Version": state["driver"], "git_version": "v0.8", "version": "0.8"}
    document = {**about, "testcases": [_make_bandwidth_test(state, test) for test in tests]}
    if not working_gpus(state):
        document = {**about, "error": "[CUDA_ERROR_NO_DEVICE] no CUDA-capable device is detected"}
    print_lines([json.dumps({"nvbandwidth": document}, indent=1)])


def _make_bandwidth_test(state: State, name: str) -> dict[str, Any]:
    slots = [gpu["index"] for gpu in working_gpus(state)]
    load = state["load"]
    if name in ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce"):
        matrix = [[f"{load['host_copy_gb_s'][slot]:g}" for slot in slots]]
    elif name == "device_to_device_memcpy_read_ce":
        peer = load["peer_copy_gb_s"]
        matrix = [["N/A" if a == b else f"{min(peer[a], peer[b]):g}" for b in slots] for a in slots]
    else:
        return {"name": name, "status": "Not Found"}
    total = sum(float(cell) for row in matrix for cell in row if cell != "N/A")
    words = f"memcpy CE {name} bandwidth (GB/s)"
    return {"name": name, "status": "Passed", "bandwidth_description": words, "bandwidth_matrix": matrix, "sum": total}


def run_ubergemm(words: list[str]) -> None:
    """Print the rate of the one GPU that $CUDA_VISIBLE_DEVICES names by index or UUID; without such a GPU, an error."""
    del words
    state = load_node_state()
    seen = {name: gpu for place, gpu in enumerate(working_gpus(state)) for name in (str(place), gpu["uuid"])}
    if not (gpu := seen.get(os.environ.get("CUDA_VISIBLE_DEVICES") or "0")):
        sys.exit("cudaGetDeviceCount: no CUDA-capable device is detected")
    rate = state["load"]["tensor_gflops"][gpu["index"]]
    print_lines([f"GFlops:{rate:.5e} GFlops"])


TOOLS: Mapping[str, Callable[[list[str]], None]] = {
    "all_reduce_perf": run_all_reduce_perf,
    "dcgmi": run_dcgmi,
    "dcgmproftester13": run_dcgmproftester,
    "gpu-fryer": run_gpu_fryer,
    "gpu_burn": run_gpu_burn,
    "nvbandwidth": run_nvbandwidth,
    "nvidia-bug-report.sh": write_bug_report,
    "provoke-faults": plant_provoked_faults,
    "ubergemm": run_ubergemm,
}
