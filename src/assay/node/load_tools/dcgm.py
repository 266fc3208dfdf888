"""DCGM's own tests: `dcgmi diag` of a node's GPUs, `dcgmi mndiag` of all nodes of a rack at once, and matrix products.

The form of the documents is NVIDIA/DCGM's testing/python3/dcgm_diag_schema.json and dcgm_mndiag_schema.json; DCGM 3
names it differently. DCGM 4's code puts the title of mndiag below the key `DCGM Diagnostic`, its schema below `DCGM
Multi-Node Diagnostic`; both are read. Nothing passes by an exit code: DCGM ends with 0 where it skipped every test.

Matrix products on tensor cores, all GPUs at once, are ubergemm and dcgmproftester. Both come with nvidia-dcgm 4, in a
folder that is named after CUDA. The source of ubergemm is not public; its line is recorded in
Azure/ai-infrastructure-on-azure, gpu_validation.md.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.node.load_tools.tool_call import (
    LoadOrder,
    ToolOutput,
    call_tool,
    parse_object,
    quote_text,
    read_list,
    read_speed,
)
from assay.node.probe.gpu.gpu_list import DRIVER_LIST, count_gpus
from assay.node.probe.node_access import NodeRoot, leaf_for_error

LEVEL_SECONDS = {1: 120, 2: 900, 3: 3600, 4: 5 * 3600}
"""So long a level may take. NVIDIA gives seconds, 2 min, 30 min and 2 h; AWS measured up to 10.5 min and 2.25 h."""
STARTING_S = 30
DOCUMENT_KEYS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
"""The first key of DCGM 4, and of DCGM 3."""
RAN_CODES = {0: "", 226: "a test failed", 205: "a test failed, and the GPU must be isolated"}
REFUSALS = {
    217: "a diagnosis runs already",
    215: "it could not start the diagnosis",
    216: "the diagnosis printed no JSON",
    204: "the diagnosis is not installed",
    203: "the diagnosis was killed",
    198: "there is no such test",
    245: "it ran out of time",
    235: "there is no connection to nv-hostengine",
}
"""Exit codes: 256 less the number of dcgmReturn_t (dcgm_structs.h)."""
FAILURE_RANK = 2
HOST_NAME_FILE = "/proc/sys/kernel/hostname"
MNDIAG_S = 3600
DCGM_PLUGINS = "/usr/libexec/datacenter-gpu-manager-4/plugins"
CUDA_FOLDER = re.compile(r"cuda(\d+)")
TENSOR_ACTIVE = 1004  # DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
GPU_END = re.compile(r"TestField \d+ test PASSED")
WORKERS_END = re.compile(r"^Skipping UnwatchFields\(\)", re.MULTILINE)
"""`GPU_END` is what dcgmproftester 4 prints at the end of each GPU, `WORKERS_END` an earlier one at its own end."""
GPU_UUIDS = ("nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader")
GPU_UUID = re.compile(r"^(\d+), (GPU-[0-9a-fA-F-]+)\s*$", re.MULTILINE)
UBERGEMM_ERROR = re.compile(r"^.*\b(?:errors?|fail(?:ed|ure)?|abort\w*)\b.*$", re.MULTILINE | re.IGNORECASE)
UBERGEMM_RATE = re.compile(r"^GFlops:\s*(\S+) GFlops\s*$", re.MULTILINE)
WORKER_RATE = re.compile(r"^Worker (\d+):\d+ ?\[\d+\]: .*\(\s*(\S+) gflops\)", re.MULTILINE)
WORKER_FAILED = re.compile(r"^.*(?:Test(?:ing)? Failed|Worker.*(?:fail|error)|Error).*$", re.MULTILINE | re.IGNORECASE)


def run_dcgm_diag(level: int, root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Run one level; DCGM itself decides how long it takes, up to `LEVEL_SECONDS`."""
    del root
    limit_s = LEVEL_SECONDS[level]
    words = ["dcgmi", "diag", "-r", str(level), "-j", "--timeout", str(limit_s)]
    return call_tool(words, LoadOrder(limit_s, order.env), parse_dcgm_diag, grace_s=STARTING_S)


def parse_dcgm_diag(output: ToolOutput) -> ReadingTree:
    """Parse the document: `devices` by GPU, `node` for what is said of no GPU in particular, versions, `exit_code`.

    Each has `tests`, by name, and `skipped`, the names of those that DCGM skipped. A test has the value `Pass`, or
    `Fail: …` or `Warn: …` with DCGM's words. Other answers are no values: `Skip` is unsupported, all else is failed.
    """
    if (refusal := explain_refusal(output)) is not None:
        return refusal
    try:
        document = parse_object(output.stdout)
    except ValueError:
        return output.fail(f"dcgmi diag printed no document; exit code {output.exit_code}")
    diagnosis = next((document[key] for key in DOCUMENT_KEYS if isinstance(document.get(key), dict)), None)
    if diagnosis is None or diagnosis.get("runtime_error"):
        error = quote_text(diagnosis["runtime_error"]) if diagnosis else "the document has no diagnosis in it"
        return failed(f"dcgmi diag could not run: {error}")
    tests = [test for category in read_list(diagnosis, "test_categories") for test in read_list(category, "tests")]
    devices = collect_gpu_answers(tests)
    node = dict(_collect_node_answers(tests))
    if not devices:
        return failed("dcgmi diag tested no GPU")
    if hidden := _find_hidden_failure(output, [*devices.values(), node]):
        return hidden
    return {
        **_read_versions(document, diagnosis),
        "exit_code": value(output.exit_code),
        "devices": {gpu: _list_skipped(answers) for gpu, answers in devices.items()},
        "node": _list_skipped(node),
    }


def _find_hidden_failure(output: ToolOutput, answers: list[ReadingTree]) -> ReadingTree | None:
    """Return a failed leaf where the exit code says that a test failed and no answer does, None otherwise."""
    if not output.exit_code or any(_rank(leaf) == FAILURE_RANK for tests in answers for leaf in tests.values()):
        return None
    return failed(f"dcgmi ended with {output.exit_code}, {RAN_CODES[output.exit_code]}; its document has no failure")


def _list_skipped(answers: ReadingTree) -> ReadingTree:
    return {"tests": answers, "skipped": value(sorted(name for name in answers if "unsupported" in answers[name]))}


def explain_refusal(output: ToolOutput) -> ReadingTree | None:
    """Return a failed leaf for an exit code with which nothing was tested, None for the others."""
    if output.exit_code in RAN_CODES:
        return None
    meaning = REFUSALS.get(output.exit_code, "")
    error = next((line for line in (output.stderr or output.stdout).splitlines() if "rror" in line), "")
    reason = "; ".join(filter(None, (meaning, quote_text(error))))
    return failed(f"{output.tool} could not run: exit code {output.exit_code}{f', {reason}' if reason else ''}")


def _read_versions(document: Mapping[str, Any], diagnosis: Mapping[str, Any]) -> ReadingTree:
    metadata = document.get("metadata")
    known = {**diagnosis, **(metadata if isinstance(metadata, dict) else {})}
    versions: ReadingTree = {}
    for leaf, keys in {"dcgm": ("version",), "driver": ("Driver Version Detected", "driver_version")}.items():
        text = next((known[key] for key in keys if isinstance(known.get(key), str)), "")
        versions[leaf] = value(quote_text(text)) if text else failed("not in the document")
    return versions


def collect_gpu_answers(tests: list[dict[str, Any]]) -> dict[str, ReadingTree]:
    """Return GPU → test → leaf. Two answers of one test about one GPU count as the worse, none as a failed one."""
    devices: dict[str, ReadingTree] = {}
    for test in tests:
        name = quote_text(test.get("name", "")).lower()
        for result in read_list(test, "results"):
            for gpu in _name_gpus(result):
                known = devices.setdefault(gpu, {}).get(name)
                devices[gpu][name] = max(filter(None, (known, make_leaf(result))), key=_rank)
    for name in {name for answers in devices.values() for name in answers}:
        for gpu, answers in devices.items():
            answers.setdefault(name, failed(f"DCGM says nothing of GPU {gpu}"))
    return devices


def _rank(leaf: ReadingTree) -> int:
    """Return how bad an answer is: a failure is worse than any other, and a plain pass is the best."""
    return FAILURE_RANK if str(leaf.get("value", "")).startswith("Fail") else int(leaf != value("Pass"))


def _name_gpus(result: Mapping[str, Any]) -> list[str]:
    """Return the GPUs that a result is about. DCGM 3 names several in one text: `0,1,2`."""
    if "entity_id" in result:
        return [quote_text(result["entity_id"])] if str(result.get("entity_group", "")).upper() == "GPU" else []
    gpus = str(result.get("gpu_id", result.get("gpu_ids", ""))).split(",")
    return [gpu.strip() for gpu in gpus if gpu.strip().isdecimal()]


def _collect_node_answers(tests: list[dict[str, Any]]) -> Iterator[tuple[str, ReadingTree]]:
    """Yield what is said of other parts than GPUs, and summaries that no result of the test explains."""
    for test in tests:
        name = quote_text(test.get("name", "")).lower()
        results = read_list(test, "results")
        for result in (result for result in results if not _name_gpus(result)):
            where = f"{result.get('entity_group', '')}{result.get('entity_id', '')}"
            yield (f"{name} {quote_text(where)}" if where else name), make_leaf(result)
        summary = test.get("test_summary")
        leaf = make_leaf(summary) if isinstance(summary, dict) else value("Pass")
        if leaf != value("Pass") and all(make_leaf(result) == value("Pass") for result in results):
            yield name, leaf


def make_leaf(result: Mapping[str, Any]) -> ReadingTree:
    """Return the leaf for one answer of a test."""
    status = str(result.get("status", "")).strip().lower()
    warnings = quote_text("; ".join(_list_remarks(result, "warnings", "info")))
    if status in ("pass", "passed"):
        errors = [remark for remark in _list_remarks(result, "info") if UBERGEMM_ERROR.search(remark)]
        beside = quote_text("; ".join([*_list_remarks(result, "warnings"), *errors]))
        return value(f"Pass, with a warning: {beside}" if beside else "Pass")
    if status in ("fail", "failed", "warn", "warning"):
        word = "Fail" if status.startswith("fail") else "Warn"
        return value(f"{word}: {warnings}" if warnings else word)
    reason = f"DCGM says {quote_text(result.get('status', 'nothing'))}{f': {warnings}' if warnings else ''}"
    return unsupported(reason) if status in ("skip", "skipped") else failed(reason)


def _list_remarks(result: Mapping[str, Any], *names: str) -> Iterator[str]:
    for name in names:
        remarks = result.get(name)
        for remark in remarks if isinstance(remarks, list) else [remarks]:
            text = remark.get("warning", "") if isinstance(remark, dict) else remark
            if isinstance(text, str) and text:
                yield text


def run_dcgm_mndiag(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Test the rack. A node that stands in no whole rack has nothing to test."""
    if not order.site.rack_hosts:
        return absent("the node's spec has no whole rack")
    words = ["dcgmi", "mndiag", "-r", "mnubergemm", "--hostList", ";".join(order.site.rack_hosts), "-j"]
    try:
        own = root.read_text(HOST_NAME_FILE)
    except OSError as error:
        return leaf_for_error(HOST_NAME_FILE, error)
    return call_tool(words, LoadOrder(MNDIAG_S, order.env), lambda output: parse_dcgm_mndiag(output, own))


def parse_dcgm_mndiag(output: ToolOutput, own: str) -> ReadingTree:
    """Parse the document: `devices` of the host `own`, by GPU and test; `hosts` with those of the others; `exit_code`.

    Leaves are as of `dcgmi diag`. A host without a result is not in it.
    """
    if (refusal := explain_refusal(output)) is not None:
        return refusal
    try:
        document = parse_object(output.stdout)
    except ValueError:
        return output.fail(f"dcgmi mndiag printed no document; exit code {output.exit_code}")
    if document.get("runtime_error"):
        return failed(f"dcgmi mndiag could not run: {quote_text(document['runtime_error'])}")
    tests = [test for category in read_list(document, "test_categories") for test in read_list(category, "tests")]
    names = {
        host["host_id"]: quote_text(host.get("hostname", "")) for host in read_list(document, "hosts") if _has_id(host)
    }
    hosts: dict[str, ReadingTree] = {name: {} for name in names.values() if name}
    for test in tests:
        if isinstance(test.get("mpi_error"), dict):
            return failed(f"dcgmi mndiag: {quote_text(test['mpi_error'].get('warning', 'an error of MPI'))}")
        for result in read_list(test, "results"):
            host = names.get(result["host_id"]) if _has_id(result) else None
            if host and str(result.get("entity_group", "")).upper() == "GPU":
                gpu = hosts[host].setdefault(quote_text(result.get("entity_id")), {})
                gpu[quote_text(test.get("name", "")).lower()] = make_leaf(result)
    errors = [quote_text(error.get("warning", "")) for error in read_list(document, "global_errors")]
    if errors or not any(hosts.values()):
        return failed(f"dcgmi mndiag: {errors[0] if errors else 'it tested no GPU'}")
    if hidden := _find_hidden_failure(output, [tests for gpus in hosts.values() for tests in gpus.values()]):
        return hidden
    mine = next((name for name in hosts if name.partition(".")[0] == own.partition(".")[0]), "")
    devices = hosts.pop(mine, {}) or failed(f"the document has no result of {quote_text(own)}")
    return {"exit_code": value(output.exit_code), "devices": devices, "hosts": hosts}


def _has_id(host: dict[str, Any]) -> bool:
    return isinstance(host.get("host_id"), int)


def run_ubergemm(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Multiply on every GPU at once, each in a process of its own, which sees the one GPU with this UUID.

    CUDA leaves a lost GPU out of its indexes, so an index may name another GPU than NVML's.
    """
    if count_gpus(root) == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    named = call_tool(GPU_UUIDS, LoadOrder(STARTING_S, order.env), parse_gpu_uuids)
    if "devices" not in named:
        return named
    uuids: dict[str, str] = named["devices"]
    words = [find_plugin(root, "ubergemm"), "-t", str(order.seconds)]

    def multiply(uuid: str) -> ReadingTree:
        return call_tool(words, order, parse_ubergemm, settings={"CUDA_VISIBLE_DEVICES": uuid})

    with ThreadPoolExecutor(len(uuids)) as workers:
        return {"devices": dict(zip(uuids, workers.map(multiply, uuids.values()), strict=True))}


def parse_gpu_uuids(output: ToolOutput) -> ReadingTree:
    """Parse `devices`: the UUID of each GPU by its index. A lost one has no row, and nvidia-smi fails because of it."""
    uuids = dict(GPU_UUID.findall(output.stdout))
    return {"devices": uuids} if uuids else output.fail(f"nvidia-smi named no GPU; exit code {output.exit_code}")


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
    if error := UBERGEMM_ERROR.search(output.text):
        return failed(f"ubergemm: {quote_text(error[0])}")
    return {"gflops": read_speed(rates[-1])}


def run_dcgmproftester(root: NodeRoot, order: LoadOrder) -> ReadingTree:
    """Keep the tensor cores of all GPUs busy, without DCGM's own judgement, which compares with its profiling."""
    if count_gpus(root) == 0:
        return absent(f"no GPU in {DRIVER_LIST}")
    for major in (14, 13, 12, 11):
        name = f"dcgmproftester{major}"
        tool = find_plugin(root, name)
        if tool != name or shutil.which(name):
            break
    else:
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
    if failure := WORKER_FAILED.search(output.text):
        return failed(f"dcgmproftester: {failure[0].strip()[:120]!r}")
    if not WORKERS_END.search(output.text) and len(GPU_END.findall(output.text)) < len(rates):
        return output.fail("dcgmproftester did not come to its end on each GPU")
    return {"devices": {gpu: {"gflops": value(median(seen))} for gpu, seen in rates.items()}}
