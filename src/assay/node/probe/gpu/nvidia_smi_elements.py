"""Maps each reading of the `gpu` branch to the element of `nvidia-smi -q -x` that holds it, and reads its text.

A text becomes a value, unsupported by this GPU, or failed. Covers nvsmi_device_v11.dtd to v13.dtd, which differ in some
names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any
from xml.etree.ElementTree import Element

from assay.model.reading import LOST, ReadingTree, failed, unsupported, value
from assay.node.probe.gpu.gpu_device import THROTTLE_REASONS

ElementQuestion = Callable[[Element], ReadingTree]

UNSUPPORTED_WORDS = {"n/a", "not supported", "function not found", "requested functionality has been deprecated"}
FAILURE_WORDS = (
    "err!",
    "error",
    "unknown",
    "requires reset",
    "requires restart",
    LOST,
    "unable to",
    "insufficient",
)
MIB = 2**20
Names = Mapping[str, Any]
"""Name → question, or further names."""
LOG = "nvidia_smi_log"
GPU = "gpu"
ADDRESS = "id"
PROCESSES = "processes/process_info"
PID = "pid"
_CLOCKS = "clocks_event_reasons"
_LINK = "pci/pci_gpu_link_info"
_ROWS = "remapped_rows"
_HISTOGRAM = f"{_ROWS}/row_remapper_histogram/row_remapper_histogram"
_HEALTH = "fabric/health"
_REASONS = {reason: reason for reason in THROTTLE_REASONS} | {"display_clock_setting": "display_clocks_setting"}


def read_value(name: str, text: str | None, convert: Callable[[str], Any]) -> ReadingTree:
    """Return the leaf for an element's text (None: no such element), passed through `convert`."""
    words = " ".join((text or "").split()).strip("[]")
    if text is None:
        return unsupported(f"nvidia-smi prints no {name}")
    if words.casefold() in UNSUPPORTED_WORDS:
        return unsupported(f"nvidia-smi says {words}")
    if not words or _is_failure(words):
        return failed(words or f"nvidia-smi leaves {name} empty")
    try:
        return value(convert(words))
    except (ValueError, LookupError, ArithmeticError):
        return failed(f"{name}: cannot make sense of {words[:80]!r}")


def read_element(path: str, convert: Callable[[str], Any] = str) -> ElementQuestion:
    """Return the question for the element at `path` below a GPU's element."""
    return lambda gpu: read_value(path, find_text(gpu, path), convert)


def find_text(gpu: Element, path: str) -> str | None:
    """Return the text of an element; where it is missing, that of the nearest element around it that reports a failure.

    `<temperature>GPU is lost</temperature>` stands in place of all temperatures.
    """
    if (text := gpu.findtext(path)) is not None:
        return text
    names = path.split("/")
    around = (gpu.findtext("/".join(names[:depth])) for depth in range(len(names) - 1, 0, -1))
    return next((text for text in (*around, gpu.text) if _is_failure(text)), None)


def _is_failure(text: str | None) -> bool:
    return text is not None and any(failure in text.casefold() for failure in FAILURE_WORDS)


def read_first(*questions: ElementQuestion) -> ElementQuestion:
    """Return the question that asks each in turn until one is supported: older versions have other element names."""

    def ask(gpu: Element) -> ReadingTree:
        answers = [question(gpu) for question in questions]
        return next((answer for answer in answers if "unsupported" not in answer), answers[0])

    return ask


def read_sum(*questions: ElementQuestion) -> ElementQuestion:
    """Return the question for a sum; where one part has no value, the answer is that part's leaf."""

    def ask(gpu: Element) -> ReadingTree:
        answers = [question(gpu) for question in questions]
        unread = [answer for answer in answers if "value" not in answer]
        return unread[0] if unread else value(sum(answer["value"] for answer in answers))

    return ask


def read_active_names(prefixes: Sequence[str], names: Mapping[str, str]) -> ElementQuestion:
    """Return the question for the names of the elements that are Active.

    `names` maps our names to nvidia-smi's, without the prefix. The first of `prefixes` with elements counts.
    """

    def ask(gpu: Element) -> ReadingTree:
        for prefix in prefixes:
            answers = {
                ours: read_value(ours, find_text(gpu, prefix + theirs), parse_switch) for ours, theirs in names.items()
            }
            if any("value" in answer for answer in answers.values()):
                return value([name for name, answer in answers.items() if answer.get("value")])
            if failure := next((answer for answer in answers.values() if "failed" in answer), None):
                return failure
        return unsupported(f"nvidia-smi prints no {prefixes[0]}")

    return ask


def parse_amount(text: str) -> float:
    """Return the number before a unit: 68.57 of `68.57 W`. Raises ValueError, also where it is not finite."""
    amount = float(text.split(maxsplit=1)[0])
    if not isfinite(amount):
        raise ValueError(text)
    return amount


def parse_whole(text: str) -> int:
    """Return the whole number before a unit: 16 of `16x`, 2560 of `2560 bank(s)`."""
    return int(text.split(maxsplit=1)[0].removesuffix("x"))


def parse_mebibytes(text: str) -> int:
    """Return bytes of `81559 MiB`."""
    amount, unit = text.split()
    return int(amount) * {"MiB": MIB}[unit]


def parse_microseconds(text: str) -> int:
    """Return microseconds of `7015 us`."""
    amount, unit = text.split()
    return int(amount) * {"us": 1}[unit]


def parse_switch(text: str) -> bool:
    """Return whether a switch is on."""
    on = dict.fromkeys(("enabled", "yes", "active", "true"), True)
    off = dict.fromkeys(("disabled", "no", "not active", "false"), False)
    return {**on, **off}[text.casefold()]


def parse_degraded(text: str) -> bool:
    """Return whether a bandwidth is less than full."""
    return {"degraded": True, "full": False}[text.casefold()]


def parse_word(text: str) -> str:
    """Return a word of a closed list in the probe's form: `drain_and_reset` for `Drain and Reset`."""
    return text.casefold().replace(" ", "_")


SYSTEM: Names = {
    "driver": read_element("driver_version"),
    "cuda": read_element("cuda_version"),
    "count": read_element("attached_gpus", parse_whole),
}


def _ecc_errors(which: str) -> Names:
    """Return the error counts since boot (`volatile`) or in total (`aggregate`)."""
    sram = f"ecc_errors/{which}/sram_"
    dram = f"ecc_errors/{which}/dram_"
    split = (
        read_element(f"{sram}uncorrectable_parity", parse_whole),
        read_element(f"{sram}uncorrectable_secded", parse_whole),
    )
    sram_uncorrected: ElementQuestion = read_first(read_sum(*split), read_element(f"{sram}uncorrectable", parse_whole))
    sram_corrected = read_element(f"{sram}correctable", parse_whole)
    dram_corrected = read_element(f"{dram}correctable", parse_whole)
    dram_uncorrected = read_element(f"{dram}uncorrectable", parse_whole)
    return {
        "corrected": read_first(
            read_sum(sram_corrected, dram_corrected), read_element(f"ecc_errors/{which}/single_bit/total", parse_whole)
        ),
        "uncorrected": read_first(
            read_sum(sram_uncorrected, dram_uncorrected),
            read_element(f"ecc_errors/{which}/double_bit/total", parse_whole),
        ),
        "sram_corrected": sram_corrected,
        "sram_uncorrected": sram_uncorrected,
        "dram_corrected": dram_corrected,
        "dram_uncorrected": dram_uncorrected,
    }


def _power(new: str, old: str) -> ElementQuestion:
    return read_first(
        read_element(f"gpu_power_readings/{new}", parse_amount), read_element(f"power_readings/{old}", parse_amount)
    )


DEVICE: Names = {
    "name": read_element("product_name"),
    "serial": read_element("serial"),
    "uuid": read_element("uuid"),
    "vbios": read_element("vbios_version"),
    "board_part": read_element("board_part_number"),
    "gsp": read_element("gsp_firmware_version"),
    "inforom": {
        "image": read_element("inforom_version/img_version"),
        "oem": read_element("inforom_version/oem_object"),
        "ecc": read_element("inforom_version/ecc_object"),
        "power": read_element("inforom_version/pwr_object"),
    },
    "pcie": {
        "generation": read_element(f"{_LINK}/pcie_gen/current_link_gen", parse_whole),
        "generation_max": read_element(f"{_LINK}/pcie_gen/max_link_gen", parse_whole),
        "width": read_element(f"{_LINK}/link_widths/current_link_width", parse_whole),
        "width_max": read_element(f"{_LINK}/link_widths/max_link_width", parse_whole),
        "replays": read_element("pci/replay_counter", parse_whole),
    },
    "clocks": {
        "sm_mhz": read_element("clocks/sm_clock", parse_whole),
        "sm_max_mhz": read_element("max_clocks/sm_clock", parse_whole),
        "memory_mhz": read_element("clocks/mem_clock", parse_whole),
        "memory_max_mhz": read_element("max_clocks/mem_clock", parse_whole),
        "application_mhz": read_element("applications_clocks/graphics_clock", parse_whole),
        "application_memory_mhz": read_element("applications_clocks/mem_clock", parse_whole),
        "application_default_mhz": read_element("default_applications_clocks/graphics_clock", parse_whole),
    },
    "throttle": read_active_names(
        [f"{_CLOCKS}/clocks_event_reason_", "clocks_throttle_reasons/clocks_throttle_reason_"], _REASONS
    ),
    "throttled": {
        "thermal_us": read_sum(
            read_element(f"{_CLOCKS}_counters/{_CLOCKS}_counters_sw_therm_slowdown", parse_microseconds),
            read_element(f"{_CLOCKS}_counters/{_CLOCKS}_counters_hw_therm_slowdown", parse_microseconds),
        ),
        "power_cap_us": read_element(f"{_CLOCKS}_counters/{_CLOCKS}_counters_sw_power_cap", parse_microseconds),
        "software_thermal_us": read_element(
            f"{_CLOCKS}_counters/{_CLOCKS}_counters_sw_therm_slowdown", parse_microseconds
        ),
        "hardware_thermal_us": read_element(
            f"{_CLOCKS}_counters/{_CLOCKS}_counters_hw_therm_slowdown", parse_microseconds
        ),
        "power_brake_us": read_element(f"{_CLOCKS}_counters/{_CLOCKS}_counters_hw_power_brake", parse_microseconds),
    },
    "temperature": {
        "gpu_c": read_element("temperature/gpu_temp", parse_whole),
        "memory_c": read_element("temperature/memory_temp", parse_whole),
        "margin_c": read_element("temperature/gpu_temp_tlimit", parse_whole),
        "shutdown_c": read_element("temperature/gpu_temp_max_threshold", parse_whole),
        "slowdown_c": read_element("temperature/gpu_temp_slow_threshold", parse_whole),
        "operating_max_c": read_element("temperature/gpu_temp_max_gpu_threshold", parse_whole),
        "memory_max_c": read_element("temperature/gpu_temp_max_mem_threshold", parse_whole),
    },
    "power": {
        "draw_w": read_first(
            read_element("gpu_power_readings/average_power_draw", parse_amount),
            read_element("gpu_power_readings/instant_power_draw", parse_amount),
            _power("power_draw", "power_draw"),
        ),
        "limit_w": _power("current_power_limit", "enforced_power_limit"),
        "requested_w": _power("requested_power_limit", "power_limit"),
        "default_w": _power("default_power_limit", "default_power_limit"),
        "max_w": _power("max_power_limit", "max_power_limit"),
    },
    "ecc": {
        "enabled": read_element("ecc_mode/current_ecc", parse_switch),
        "pending": read_element("ecc_mode/pending_ecc", parse_switch),
        "volatile": _ecc_errors("volatile"),
        "aggregate": _ecc_errors("aggregate"),
        "sram_threshold_exceeded": read_element("ecc_errors/aggregate/sram_threshold_exceeded", parse_switch),
    },
    "retired_pages": {
        "single_bit": read_element("retired_pages/multiple_single_bit_retirement/retired_count", parse_whole),
        "double_bit": read_element("retired_pages/double_bit_retirement/retired_count", parse_whole),
        "pending": read_first(
            read_element("retired_pages/pending_retirement", parse_switch),
            read_element("retired_pages/pending_blacklist", parse_switch),
        ),
    },
    "remap": {
        "correctable": read_element(f"{_ROWS}/remapped_row_corr", parse_whole),
        "uncorrectable": read_element(f"{_ROWS}/remapped_row_unc", parse_whole),
        "pending": read_element(f"{_ROWS}/remapped_row_pending", parse_switch),
        "failed": read_element(f"{_ROWS}/remapped_row_failure", parse_switch),
        "histogram": {
            left: read_element(f"{_HISTOGRAM}_{left}", parse_whole)
            for left in ("max", "high", "partial", "low", "none")
        },
    },
    "repair": {
        "channel_pending": read_element("ecc_errors/channel_repair_pending", parse_switch),
        "tpc_pending": read_element("ecc_errors/tpc_repair_pending", parse_switch),
    },
    "nvlink": read_element("nvlink"),  # never printed: unsupported by this source
    "fabric": {
        "state": read_element("fabric/state", parse_word),
        "status": read_element("fabric/status", parse_word),
        "clique": read_first(
            read_element("fabric/cliqueId", parse_whole), read_element("fabric/clique_id", parse_whole)
        ),
        "cluster": read_first(read_element("fabric/clusterUuid"), read_element("fabric/cluster_uuid")),
        "health": {
            "summary": read_element(f"{_HEALTH}/summary", parse_word),
            "degraded_bandwidth": read_element(f"{_HEALTH}/bandwidth", parse_degraded),
            "route_recovery": read_element(f"{_HEALTH}/route_recovery_in_progress", parse_switch),
            "route_unhealthy": read_element(f"{_HEALTH}/route_unhealthy", parse_switch),
            "access_timeout_recovery": read_element(f"{_HEALTH}/access_timeout_recovery", parse_switch),
            "incorrect_configuration": read_element(f"{_HEALTH}/incorrect_configuration", parse_word),
        },
    },
    "mig": {
        "enabled": read_element("mig_mode/current_mig", parse_switch),
        "pending": read_element("mig_mode/pending_mig", parse_switch),
    },
    "persistence": read_element("persistence_mode", parse_switch),
    "compute_mode": read_element("compute_mode", parse_word),
    "memory": {
        "total_bytes": read_element("fb_memory_usage/total", parse_mebibytes),
        "used_bytes": read_element("fb_memory_usage/used", parse_mebibytes),
        "free_bytes": read_element("fb_memory_usage/free", parse_mebibytes),
    },
    "utilisation": {
        "gpu_percent": read_element("utilization/gpu_util", parse_whole),
        "memory_percent": read_element("utilization/memory_util", parse_whole),
    },
    "recovery_action": read_element("gpu_recovery_action", parse_word),
}
