"""The tools of a virtual node's host: load on drives, adapters and memory, and what brings settings into the next boot.

The loads run without site packages (`-S`) and start often: what only the others need is imported late.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from assay.lab.tools.state_reader import State, load_node_state, print_lines

if TYPE_CHECKING:
    import argparse

FIO_NO_SUCH_DEVICE = 2
FIO_MISCOMPARE = 84
STRESS_PID = 4242
STRESS_FAILED = 2
MENU_ENTRY = re.compile(r"with Linux (\S+?)\"?$")


def run_fio(words: list[str]) -> None:
    """Print the document of `--output-format=json`: a read of one drive, or a file written and verified."""
    state = load_node_state()
    options = dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word)
    if "verify" in options:
        shared = [f"{mount['point']}/" for mount in state["host"]["mounts"] if mount["type"] == "nfs4"]
        is_shared = any(point in options["filename"] for point in shared)
        error = 0 if state["load"]["stored" if is_shared else "intact"] else FIO_MISCOMPARE
        ways = {way: {"io_bytes": 2**30, "bw_bytes": 2_100_000_000} for way in ("read", "write")}
        job = {"jobname": "verify", "error": error, **ways}
    else:
        job = _read_drive(state, options)
    print_lines([json.dumps({"fio version": "fio-3.33", "jobs": [job]}, indent=2)])
    sys.exit(1 if job["error"] else 0)


def _read_drive(state: State, options: Mapping[str, str]) -> dict[str, Any]:
    """Return fio's job that reads `filename`, such as `/dev/nvme0n1`."""
    drives = {f"/dev/{drive['name']}n1": drive for drive in state["nvme"] if drive["present"]}
    drive = drives.get(options.get("filename", ""))
    bytes_per_s = int(drive["mb_s"] * 1e6) if drive else 0
    read = {"io_bytes": 5 * bytes_per_s, "bw_bytes": bytes_per_s, "bw": bytes_per_s // 1024, "runtime": 5000}
    error = 0 if drive else FIO_NO_SUCH_DEVICE
    return {"jobname": options.get("name", ""), "groupid": 0, "error": error, "read": read}


def run_ib_write_bw(words: list[str]) -> None:
    """Write the report of the client for the adapter after `-d`; a server has nothing to say."""
    state = load_node_state()
    adapter = words[words.index("-d") + 1]
    known = {hca["name"]: hca for hca in state["hcas"]}
    if adapter not in known:
        sys.exit(" Unable to find the Infiniband/RoCE device")
    if known[adapter]["state"] != "ACTIVE":
        sys.exit(" Port number 1 state is Down")
    if words[-1] != "localhost":
        return
    speed = state["load"]["write_gbps"][adapter]
    results = {"MsgSize": 8388608, "n_iterations": 58891, "BW_peak": 0.0, "BW_average": speed, "MsgRate": 0.005859}
    report = {"test_info": {"test": "RDMA_Write_BW_Test", "Device": adapter, "Link_type": "IB"}, "results": results}
    options = dict(word.split("=", 1) for word in words if word.startswith("--out_json_file="))
    with open(options["--out_json_file"], "w") as file:  # noqa: PTH123 — pathlib costs start-up time
        json.dump(report, file, indent=0)
    heading = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]"
    print_lines([heading, f" 8388608    58891    0.00    {speed}"])


def run_stress_ng(words: list[str]) -> None:
    """Print the log of `--vm N --vm-bytes SIZE --verify`, with the node's memory errors; refuse other options."""
    import argparse

    parser = argparse.ArgumentParser("stress-ng", allow_abbrev=False)
    for option in ("--vm", "--vm-bytes", "--timeout"):
        parser.add_argument(option, required=True)
    parser.add_argument("--vm-method", choices=("all",))
    for switch in ("--vm-keep", "--verify", "--metrics-brief"):
        parser.add_argument(switch, action="store_true")
    options = parser.parse_args(words)
    errors = int(load_node_state()["active"]["memory_errors"]) if options.verify else 0
    print_lines(_format_stress_log(options, errors))
    sys.exit(STRESS_FAILED if errors else 0)


def _format_stress_log(options: argparse.Namespace, errors: int) -> Iterator[str]:
    yield f"stress-ng: info:  [{STRESS_PID}] dispatching hogs: {options.vm} vm"
    worker = STRESS_PID + 1
    if errors:
        yield f"stress-ng: fail:  [{worker}] vm: detected {errors} bit errors while stressing memory"
        yield f"stress-ng: error: [{STRESS_PID}] process {worker} (vm) terminated with an error, exit status=2"
    if options.metrics_brief:
        yield f"stress-ng: metrc: [{STRESS_PID}] stressor       bogo ops real time  usr time  sys time"
        yield f"stress-ng: metrc: [{STRESS_PID}] vm               1024000     60.00     55.10      1.20"
    success = "unsuccessful" if errors else "successful"
    yield f"stress-ng: info:  [{STRESS_PID}] {success} run completed in {float(options.timeout.rstrip('s')):.2f}s"


def run_stressapptest(words: list[str]) -> None:
    """Print its last lines, with the node's memory errors; exit with 1 if there are any."""
    del words
    errors = int(load_node_state()["active"]["memory_errors"])
    counts = f"with {min(errors, 1)} hardware incidents, {errors} errors"
    status = "FAIL - test discovered HW problems" if errors else "PASS - please verify no corrected errors"
    print_lines([f"Stats: Completed: 11114.00M in 5.02s 2214.03MB/s, {counts}", "", f"Status: {status}", ""])
    sys.exit(1 if errors else 0)


def run_update_grub(words: list[str]) -> None:
    """Let the kernel and command line of grub's drop-ins count from the next boot on.

    The image with which the node's disk was made stays on the command line.
    """
    from assay.model.specs.image import IMAGE

    del words
    lines = [line for text in _read_settings("default/grub.d/*.cfg") for line in text.splitlines()]
    kernels = [entry[1] for entry in map(MENU_ENTRY.search, lines) if entry]
    options: list[str] = []
    for line in lines:
        if line.startswith("GRUB_CMDLINE_LINUX="):
            options += line.strip('"').split()[1:]

    def change(state: State) -> dict[str, Any]:
        kernel = kernels[-1] if kernels else state["kernel"]
        image = [word for word in state["cmdline"].split() if word.startswith(f"{IMAGE}=")]
        command_line = [f"BOOT_IMAGE=/vmlinuz-{kernel}", "root=/dev/md0", "ro", *options, *image]
        return {"kernel": kernel, "cmdline": " ".join(command_line)}

    _change_next_boot(change)


def run_update_initramfs(words: list[str]) -> None:
    """Let the options of modules in /etc/modprobe.d count from the next boot on."""
    del words
    options: dict[str, dict[str, str]] = {}
    for text in _read_settings("modprobe.d/*.conf"):
        for keyword, *line in filter(None, map(str.split, text.splitlines())):
            if keyword == "options":
                settings = (word.partition("=") for word in line[1:])
                options.setdefault(line[0], {}).update({name: value for name, _, value in settings})
    _change_next_boot(lambda _: {"module_options": options})


def _read_settings(pattern: str) -> list[str]:
    """Return the texts of the files below the node's /etc, in the order of their names."""
    from pathlib import Path

    return [path.read_text() for path in sorted(Path(os.environ["ASSAY_ROOT"], "etc").glob(pattern))]


def _change_next_boot(change: Callable[[State], dict[str, Any]]) -> None:
    from pathlib import Path

    from assay.lab.world import LabWorld

    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    with LabWorld(folder.parents[1]).change(folder.name) as state:
        state["next_boot"] = {**state.get("next_boot", {}), **change(state)}


TOOLS: Mapping[str, Callable[[list[str]], None]] = {
    "fio": run_fio,
    "ib_write_bw": run_ib_write_bw,
    "stress-ng": run_stress_ng,
    "stressapptest": run_stressapptest,
    "update-grub": run_update_grub,
    "update-initramfs": run_update_initramfs,
}
