"""NVML's readings for a machine without a C compiler: what the lab's nvidia-smi prints, and what only NVML tells."""

from __future__ import annotations

from typing import Any

from assay.lab.node.stub import Flat, stub_answers
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.reading import unsupported, value
from assay.node.probe.gpu.nvlink import build_fabric_branch
from assay.node.probe.gpu.nvml import GPU_LOST

ReadingTree = dict[str, Any]
THRESHOLDS = ("shutdown_c", "slowdown_c", "operating_max_c", "memory_max_c")


def add_nvml_readings(gpu: ReadingTree, state: VirtualNodeState) -> None:
    """Add to the probe's `gpu` branch, as read through nvidia-smi, what NVML would tell of a node in this state."""
    flat = stub_answers(state)
    gpu |= {"source": value("nvml"), "nvml": value(flat["nvml"])}
    for index, slot in enumerate(str(flat["slots"]).split()):
        answer = {key.removeprefix(f"g{slot}."): flat[key] for key in flat if key.startswith(f"g{slot}.")}
        pci = str(answer["pci"]).lower()
        if answer["rc"]:
            gpu["devices"][pci] = GPU_LOST
        else:
            device = gpu["devices"][pci]
            device["index"] = value(index)  # nvidia-smi does not count a lost GPU
            device["inforom"]["valid"] = value(bool(answer["inforom_valid"]))
            device["temperature"] |= {name: value(answer[name]) for name in THRESHOLDS}
            device["nvlink"] = _nvlink(answer)
            device["fabric"] = _fabric(answer)


def _nvlink(answer: Flat) -> ReadingTree:
    links = int(answer["nvlink_links"])
    up = int(answer["nvlink_up"])
    return {
        "links": value(links),
        "up": value(min(links, up)),
        "link": {str(link): _link(answer, link, up=link < up) for link in range(links)},
    }


def _link(answer: Flat, link: int, *, up: bool) -> ReadingTree:
    counted = {name: value(answer.get(f"nvlink{link}_{name}", 0)) for name in ("recoveries", "crc_errors")}
    replays = value(answer.get(f"nvlink{link}_replays", 0))
    return {
        "up": value(up),
        "speed_gb_s": value(int(answer["nvlink_speed_mb_s"]) / 1000),
        "replays": replays if int(answer["nvlink_generation"]) < 5 else unsupported("Not Supported"),
        **counted,
    }


def _fabric(answer: Flat) -> ReadingTree:
    state, status, clique, health, summary = (
        int(answer[f"fabric_{number}"]) for number in ("state", "status", "clique", "health", "summary")
    )
    return build_fabric_branch(state, status, clique, str(answer["fabric_cluster"]), health, summary)
