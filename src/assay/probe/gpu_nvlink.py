"""A GPU's NVLinks: how many there are and are up, and each link's speed and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.model.reading import failed, value
from assay.probe.files import Tree
from assay.probe.lazy import Lazy
from assay.probe.nvml import Gpu

MOST_LINKS = 36  # NVML_NVLINK_MAX_LINKS
# NVML_FI_DEV_NVLINK_…, scope: the link. From NVLink 5 on the errors have other counters.
FIELDS = {
    "speed_gb_s": (164, 90),  # GET_SPEED, SPEED_MBPS_COMMON: MB/s each way
    "replays": (161,),  # ERROR_DL_REPLAY
    "recoveries": (162, 215),  # ERROR_DL_RECOVERY, COUNT_LINK_RECOVERY_EVENTS
    "crc_errors": (163, 219),  # ERROR_DL_CRC, COUNT_EFFECTIVE_ERRORS: left after forward error correction
}
ASKED = [(name, field) for name, fields in FIELDS.items() for field in fields]
COUNTERS = {"replays": 0, "recoveries": 1, "crc_errors": 2}  # NVML_NVLINK_ERROR_DL_…, before NVLink 4


def read_nvlink(gpu: Gpu) -> Callable[[], Lazy]:
    """Return the question for the branch `nvlink`."""

    def ask() -> Lazy:
        states, refusal = _states(gpu)
        if states:
            return {
                "links": value(len(states)),
                "up": value(sum(states)),
                "link": lambda: _links(gpu, states),
            }
        return refusal if "unsupported" in refusal else failed(f"NVLink 0: {next(iter(refusal.values()))}")

    return ask


def _states(gpu: Gpu) -> tuple[list[int], Tree]:
    """Return the state of every link, and what was said to the first that is none: NVML refuses its number."""
    states: list[int] = []
    for link in range(MOST_LINKS):
        leaf = gpu.ask("nvmlDeviceGetNvLinkState", link)
        if "value" not in leaf:
            return states, leaf
        states.append(leaf["value"])
    return states, {}


def _links(gpu: Gpu, states: list[int]) -> Tree:
    leaves = gpu.fields([(field, link) for link in range(len(states)) for _, field in ASKED])
    share = len(ASKED)
    links = {}
    for link, state in enumerate(states):
        named = _named(leaves[link * share : (link + 1) * share])
        if "unsupported" in named["recoveries"]:
            named |= {
                name: gpu.ask("nvmlDeviceGetNvLinkErrorCounter", link, number) for name, number in COUNTERS.items()
            }
        links[str(link)] = {"up": value(bool(state)), **named}
    return links


def _named(leaves: list[Tree]) -> Tree:
    """Return one link's fields by name, of each the first that this GPU has."""
    found: dict[str, Any] = {}
    for (name, _), leaf in zip(ASKED, leaves, strict=True):
        if name not in found or "unsupported" in found[name]:
            found[name] = leaf
    if "value" in found["speed_gb_s"]:
        found["speed_gb_s"] = value(found["speed_gb_s"]["value"] / 1000)
    return found
