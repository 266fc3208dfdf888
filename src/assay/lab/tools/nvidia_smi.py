"""`nvidia-smi` on a virtual node: its report (`-q -x`), the settings of GPUs (`--query-gpu=…`), and changes of them.

Tools start without site packages, which the lab's world needs: a change goes on in a Python with them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from assay.lab.node.stub import stub_answers
from assay.lab.tools.state_reader import load_node_state, print_lines, working_gpus
from assay.node.probe.gpu.gpu_device import THROTTLE_REASONS
from assay.node.probe.gpu.nvlink import FABRIC_STATES, HEALTH_SUMMARIES

HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n'
QUERY = "--query-gpu="
QUERY_FORMATS = ("--format=csv,noheader,nounits", "--format=csv,noheader")
REFUSED = 2  # "a supplied argument or flag is invalid"
DEVICE_NOT_FOUND = 6  # nvidia-smi's exit code
MIB = 2**20
COMPUTE_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
ACTIONS = (
    "None",
    "Reset",
    "Reboot",
    "Drain P2P",
    "Drain and Reset",
    "Recover IMEX Domain",
    "Bus Reset",
    "System Reboot",
)
PRINTED_REASONS = THROTTLE_REASONS[:8]

Answer = Mapping[str, Any]
Gpu = dict[str, Any]


def run_nvidia_smi(words: list[str]) -> None:
    """Print the report, print settings, or change a setting."""
    if words == ["-q", "-x"]:
        sys.stdout.write(format_smi_xml(load_node_state()))
    elif len(words) == 2 and words[0].startswith(QUERY) and words[1] in QUERY_FORMATS:
        names = words[0].removeprefix(QUERY).split(",")
        if unknown := [name for name in names if name not in COLUMNS]:
            print_lines([f'Field "{unknown[0]}" is not a valid field to query.'])
            sys.exit(REFUSED)
        state = load_node_state()
        gpus = [{**gpu, "driver": state["driver"]} for gpu in working_gpus(state)]
        print_lines(", ".join(str(COLUMNS[name](gpu)) for name in names) for gpu in gpus)
    elif len(words) != 4 or words[0] != "-i" or words[2] not in OPTIONS:
        print_lines(["Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."])
        sys.exit(REFUSED)
    elif sys.flags.no_site:
        os.execv(sys.executable, [sys.executable, "-m", "assay.lab.tools", "nvidia-smi", *words])  # noqa: S606 — no shell
    else:
        sys.exit(_change_setting(*words[1:]))


def _change_setting(address: str, option: str, text: str) -> int:
    """Change a setting of one GPU in the state of the node. Return the exit code."""
    from pathlib import Path

    from assay.lab.world import LabWorld

    folder = Path(os.environ["ASSAY_LAB_STATE"]).parent
    with LabWorld(folder.parents[1]).change(folder.name) as state:
        gpus = [gpu for gpu in working_gpus(state) if gpu["pci"] == address[-12:].lower()]
        for gpu in gpus:
            gpu.update(OPTIONS[option](text))
    return 0 if gpus else DEVICE_NOT_FOUND


def format_smi_xml(state: dict[str, Any]) -> str:
    """Return the report: NVML's answers about the GPUs, in the elements of nvsmi_device_v13.dtd.

    Like the real tool, it names GPUs without a handle before the XML and corrupted InfoROMs after it.
    """
    flat = stub_answers(state)
    log = _element("nvidia_smi_log", _system(flat))
    before = after = ""
    for slot in str(flat["slots"]).split():
        start = f"g{slot}."
        gpu = {key.removeprefix(start): answer for key, answer in flat.items() if key.startswith(start)}
        if gpu["rc"]:
            lost = "GPU is lost.  Reboot the system to recover this GPU"
            before += f"Unable to determine the device handle for GPU{gpu['pci']}: {lost}\n"
        else:
            log.append(_element("gpu", _device(gpu), id=f"0000{gpu['pci']}"))
        if not gpu["inforom_valid"]:
            after += f"WARNING: infoROM is corrupted at gpu 0000{gpu['pci']}\n"
    ElementTree.indent(log, "\t")
    return f"{before}{HEAD}{ElementTree.tostring(log, encoding='unicode')}\n{after}"


def _element(name: str, content: Any, **attributes: str) -> ElementTree.Element:
    """Return an element. A mapping or list becomes its children, anything else its text."""
    element = ElementTree.Element(name, attributes)
    if isinstance(content, Mapping):
        element.extend(_element(*item) for item in content.items())
    elif isinstance(content, list):
        element.extend(content)
    else:
        element.text = str(content)
    return element


def _system(flat: Answer) -> dict[str, Any]:
    cuda = int(flat["cuda"])
    return {
        "driver_version": flat["driver"],
        "cuda_version": f"{cuda // 1000}.{cuda % 1000 // 10}",
        "attached_gpus": flat["count"],
    }


def _device(gpu: Answer) -> dict[str, Any]:
    return {
        "product_name": gpu["name"],
        "persistence_mode": _switch(gpu["persistence"]),
        "mig_mode": {"current_mig": _switch(gpu["mig_enabled"]), "pending_mig": _switch(gpu["mig_pending"])},
        "serial": gpu["serial"],
        "uuid": gpu["uuid"],
        "vbios_version": gpu["vbios"],
        "board_part_number": gpu["board_part"],
        "inforom_version": {
            "img_version": gpu["inforom_image"],
            "oem_object": gpu["inforom_oem"],
            "ecc_object": gpu["inforom_ecc"],
            "pwr_object": "N/A",
        },
        "gpu_recovery_action": ACTIONS[gpu["recovery_action"]],
        "gsp_firmware_version": gpu["gsp"],
        "pci": _pci(gpu),
        "clocks_event_reasons": {
            f"clocks_event_reason_{reason}": "Active" if gpu["throttle"] >> bit & 1 else "Not Active"
            for bit, reason in enumerate(PRINTED_REASONS)
        },
        "clocks_event_reasons_counters": dict(_slowed(gpu)),
        "fb_memory_usage": {
            "total": f"{gpu['memory_total_bytes'] // MIB} MiB",
            "used": f"{gpu['memory_used_bytes'] // MIB} MiB",
            "free": f"{(gpu['memory_total_bytes'] - gpu['memory_used_bytes']) // MIB} MiB",
        },
        "compute_mode": COMPUTE_MODES[gpu["compute_mode"]],
        "utilization": {"gpu_util": f"{gpu['gpu_percent']} %", "memory_util": f"{gpu['memory_percent']} %"},
        "ecc_mode": {"current_ecc": _switch(gpu["ecc_enabled"]), "pending_ecc": _switch(gpu["ecc_pending"])},
        "ecc_errors": _errors(gpu),
        "retired_pages": {
            "multiple_single_bit_retirement": {"retired_count": "N/A"},
            "double_bit_retirement": {"retired_count": "N/A"},
            "pending_retirement": "N/A",
        },
        "remapped_rows": dict(_rows(gpu)),
        "temperature": {
            "gpu_temp": f"{gpu['temperature_c']} C",
            "gpu_temp_tlimit": f"{gpu['margin_c']} C",
            "memory_temp": f"{gpu['memory_temperature_c']} C",
        },
        "gpu_power_readings": dict(_power(gpu)),
        **_clocks(gpu),
        "fabric": _fabric(gpu),
        "processes": [_element("process_info", {"pid": pid, "type": "C"}) for pid in gpu["pids"].split()],
    }


def _clocks(gpu: Answer) -> dict[str, Any]:
    return {
        "clocks": {"sm_clock": f"{gpu['sm_mhz']} MHz", "mem_clock": f"{gpu['memory_mhz']} MHz"},
        "applications_clocks": {
            "graphics_clock": f"{gpu['application_mhz']} MHz",
            "mem_clock": f"{gpu['application_memory_mhz']} MHz",
        },
        "default_applications_clocks": {"graphics_clock": f"{gpu['application_default_mhz']} MHz"},
        "max_clocks": {"sm_clock": f"{gpu['sm_max_mhz']} MHz", "mem_clock": f"{gpu['memory_max_mhz']} MHz"},
    }


def _switch(on: int) -> str:
    return "Enabled" if on else "Disabled"


def _yes(flag: int) -> str:
    return "Yes" if flag else "No"


def _pci(gpu: Answer) -> dict[str, Any]:
    generation = {"max_link_gen": gpu["pcie_generation_max"], "current_link_gen": gpu["pcie_generation"]}
    width = {"max_link_width": f"{gpu['pcie_width_max']}x", "current_link_width": f"{gpu['pcie_width']}x"}
    return {
        "pci_gpu_link_info": {"pcie_gen": generation, "link_widths": width},
        "replay_counter": gpu["pcie_replays"],
    }


def _slowed(gpu: Answer) -> Iterator[tuple[str, str]]:
    names = {
        "sw_power_cap": "power_cap",
        "sw_therm_slowdown": "software_thermal",
        "hw_therm_slowdown": "hardware_thermal",
        "hw_power_brake": "power_brake",
    }
    for printed, reason in names.items():
        yield f"clocks_event_reasons_counters_{printed}", f"{gpu[f'throttled_{reason}_ns'] // 1000} us"


def _errors(gpu: Answer) -> dict[str, Any]:
    def of(counter: str) -> dict[str, Any]:
        start = f"ecc_{counter}_"
        return {
            "sram_correctable": gpu[f"{start}sram_corrected"],
            "sram_uncorrectable_parity": gpu[f"{start}sram_uncorrected"],
            "sram_uncorrectable_secded": 0,
            "dram_correctable": gpu[f"{start}dram_corrected"],
            "dram_uncorrectable": gpu[f"{start}dram_uncorrected"],
        }

    return {
        "volatile": of("volatile"),
        "aggregate": {**of("aggregate"), "sram_threshold_exceeded": _yes(gpu["sram_threshold_exceeded"])},
        "channel_repair_pending": _yes(gpu["repair_channel"]),
        "tpc_repair_pending": _yes(gpu["repair_tpc"]),
    }


def _rows(gpu: Answer) -> Iterator[tuple[str, Any]]:
    yield "remapped_row_corr", gpu["remap_correctable"]
    yield "remapped_row_unc", gpu["remap_uncorrectable"]
    yield "remapped_row_pending", _yes(gpu["remap_pending"])
    yield "remapped_row_failure", _yes(gpu["remap_failed"])
    start = "row_remapper_histogram"
    left = ("max", "high", "partial", "low", "none")
    yield start, {f"{start}_{each}": f"{gpu[f'remap_banks_{each}']} bank(s)" for each in left}


def _power(gpu: Answer) -> Iterator[tuple[str, str]]:
    names = {
        "average_power_draw": "power_mw",
        "current_power_limit": "power_limit_mw",
        "requested_power_limit": "power_requested_mw",
        "default_power_limit": "power_default_mw",
        "max_power_limit": "power_max_mw",
    }
    for printed, key in names.items():
        yield printed, f"{gpu[key] / 1000:.2f} W"


def _fabric(gpu: Answer) -> dict[str, Any]:
    summary = HEALTH_SUMMARIES[gpu["fabric_summary"]].replace("_", " ").title()
    return {
        "state": FABRIC_STATES[gpu["fabric_state"]].replace("_", " ").title(),
        "status": "Unknown Error" if gpu["fabric_status"] else "Success",
        "cliqueId": gpu["fabric_clique"],
        "clusterUuid": gpu["fabric_cluster"],
        "health": {"summary": summary or "N/A"},
    }


COLUMNS: Mapping[str, Callable[[Gpu], Any]] = {
    "index": lambda gpu: gpu["index"],
    "uuid": lambda gpu: gpu["uuid"],
    "driver_version": lambda gpu: gpu["driver"],
    "pci.bus_id": lambda gpu: f"0000{gpu['pci'].upper()}",
    "persistence_mode": lambda gpu: _switch(gpu["persistence"]),
    "ecc.mode.pending": lambda gpu: _switch(gpu["ecc_pending"]),
    "mig.mode.pending": lambda gpu: _switch(gpu["mig_pending"]),
    "compute_mode": lambda gpu: COMPUTE_MODES[gpu["compute_mode"]],
    "clocks.applications.memory": lambda gpu: gpu["application_memory_mhz"],
    "clocks.applications.graphics": lambda gpu: gpu["application_mhz"],
    "power.limit": lambda gpu: f"{gpu['power_limit_w']:.2f}",
}
OPTIONS: Mapping[str, Callable[[str], Gpu]] = {
    "-pm": lambda text: {"persistence": text == "1"},
    "-e": lambda text: {"ecc_pending": text == "1"},
    "-mig": lambda text: {"mig_enabled": text == "1", "mig_pending": text == "1"},
    "-c": lambda text: {"compute_mode": int(text)},
    "-ac": lambda text: dict(
        zip(("application_memory_mhz", "application_mhz"), map(int, text.split(",")), strict=True)
    ),
    "-pl": lambda text: {"power_limit_w": int(text)},
}
TOOLS = {"nvidia-smi": run_nvidia_smi}
