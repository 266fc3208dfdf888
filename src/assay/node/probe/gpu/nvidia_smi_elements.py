"""Maps each reading of the `gpu` branch to the element of `nvidia-smi -q -x` that holds it.

Covers nvsmi_device_v11.dtd to v13.dtd, which differ in some names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.node.probe.gpu.clocks_power_temperature import THROTTLE_REASONS
from assay.node.probe.gpu.nvidia_smi_values import (
    ElementQuestion,
    parse_amount,
    parse_degraded,
    parse_mebibytes,
    parse_microseconds,
    parse_switch,
    parse_whole,
    parse_word,
    read_active_names,
    read_element,
    read_first,
    read_sum,
)

Names = Mapping[str, Any]
"""Name → question, or further names."""

LOG, GPU, ADDRESS = "nvidia_smi_log", "gpu", "id"
PROCESSES, PID = "processes/process_info", "pid"

SYSTEM: Names = {
    "driver": read_element("driver_version"),
    "cuda": read_element("cuda_version"),
    "count": read_element("attached_gpus", parse_whole),
}


def _ecc_errors(which: str) -> Names:
    """Return the error counts since boot (`volatile`) or in total (`aggregate`)."""
    sram, dram = f"ecc_errors/{which}/sram_", f"ecc_errors/{which}/dram_"
    split = (
        read_element(f"{sram}uncorrectable_parity", parse_whole),
        read_element(f"{sram}uncorrectable_secded", parse_whole),
    )
    sram_uncorrected: ElementQuestion = read_first(read_sum(*split), read_element(f"{sram}uncorrectable", parse_whole))
    sram_corrected, dram_corrected = (
        read_element(f"{sram}correctable", parse_whole),
        read_element(f"{dram}correctable", parse_whole),
    )
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


_CLOCKS, _LINK, _ROWS = "clocks_event_reasons", "pci/pci_gpu_link_info", "remapped_rows"
_HISTOGRAM, _HEALTH = f"{_ROWS}/row_remapper_histogram/row_remapper_histogram", "fabric/health"
_REASONS = {reason: reason for reason in THROTTLE_REASONS} | {"display_clock_setting": "display_clocks_setting"}

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
