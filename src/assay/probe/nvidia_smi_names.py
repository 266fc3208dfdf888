"""The element names of `nvidia-smi -q -x`, and under which name of the `gpu` branch each stands.

The one place that knows them. Older versions have other names: nvsmi_device_v11.dtd to v13.dtd are covered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.probe.gpu_throttle import THROTTLE
from assay.probe.nvidia_smi_words import (
    Question,
    active,
    at,
    degraded,
    either,
    mebibytes,
    microseconds,
    name,
    number,
    total,
    truth,
    whole,
)

Names = Mapping[str, Any]
"""Name → question, or further names."""

LOG, GPU, ADDRESS = "nvidia_smi_log", "gpu", "id"
PROCESSES, PID = "processes/process_info", "pid"

SYSTEM: Names = {
    "driver": at("driver_version"),
    "cuda": at("cuda_version"),
    "count": at("attached_gpus", whole),
}


def _counted(which: str) -> Names:
    sram, dram = f"ecc_errors/{which}/sram_", f"ecc_errors/{which}/dram_"
    split = (at(f"{sram}uncorrectable_parity", whole), at(f"{sram}uncorrectable_secded", whole))
    sram_uncorrected: Question = either(total(*split), at(f"{sram}uncorrectable", whole))
    sram_corrected, dram_corrected = at(f"{sram}correctable", whole), at(f"{dram}correctable", whole)
    dram_uncorrected = at(f"{dram}uncorrectable", whole)
    return {
        "corrected": either(total(sram_corrected, dram_corrected), at(f"ecc_errors/{which}/single_bit/total", whole)),
        "uncorrected": either(
            total(sram_uncorrected, dram_uncorrected), at(f"ecc_errors/{which}/double_bit/total", whole)
        ),
        "sram_corrected": sram_corrected,
        "sram_uncorrected": sram_uncorrected,
        "dram_corrected": dram_corrected,
        "dram_uncorrected": dram_uncorrected,
    }


def _power(new: str, old: str) -> Question:
    return either(at(f"gpu_power_readings/{new}", number), at(f"power_readings/{old}", number))


_CLOCKS, _LINK, _ROWS = "clocks_event_reasons", "pci/pci_gpu_link_info", "remapped_rows"
_HISTOGRAM, _HEALTH = f"{_ROWS}/row_remapper_histogram/row_remapper_histogram", "fabric/health"
_REASONS = {reason: reason for reason in THROTTLE} | {"display_clock_setting": "display_clocks_setting"}

DEVICE: Names = {
    "name": at("product_name"),
    "serial": at("serial"),
    "uuid": at("uuid"),
    "vbios": at("vbios_version"),
    "board_part": at("board_part_number"),
    "gsp": at("gsp_firmware_version"),
    "inforom": {
        "image": at("inforom_version/img_version"),
        "oem": at("inforom_version/oem_object"),
        "ecc": at("inforom_version/ecc_object"),
        "power": at("inforom_version/pwr_object"),
    },
    "pcie": {
        "generation": at(f"{_LINK}/pcie_gen/current_link_gen", whole),
        "generation_max": at(f"{_LINK}/pcie_gen/max_link_gen", whole),
        "width": at(f"{_LINK}/link_widths/current_link_width", whole),
        "width_max": at(f"{_LINK}/link_widths/max_link_width", whole),
        "replays": at("pci/replay_counter", whole),
    },
    "clocks": {
        "sm_mhz": at("clocks/sm_clock", whole),
        "sm_max_mhz": at("max_clocks/sm_clock", whole),
        "memory_mhz": at("clocks/mem_clock", whole),
        "memory_max_mhz": at("max_clocks/mem_clock", whole),
        "application_mhz": at("applications_clocks/graphics_clock", whole),
        "application_default_mhz": at("default_applications_clocks/graphics_clock", whole),
    },
    "throttle": active(
        [f"{_CLOCKS}/clocks_event_reason_", "clocks_throttle_reasons/clocks_throttle_reason_"], _REASONS
    ),
    "throttled": {
        "thermal_us": total(
            at(f"{_CLOCKS}_counters/{_CLOCKS}_counters_sw_therm_slowdown", microseconds),
            at(f"{_CLOCKS}_counters/{_CLOCKS}_counters_hw_therm_slowdown", microseconds),
        ),
        "power_cap_us": at(f"{_CLOCKS}_counters/{_CLOCKS}_counters_sw_power_cap", microseconds),
        "software_thermal_us": at(f"{_CLOCKS}_counters/{_CLOCKS}_counters_sw_therm_slowdown", microseconds),
        "hardware_thermal_us": at(f"{_CLOCKS}_counters/{_CLOCKS}_counters_hw_therm_slowdown", microseconds),
        "power_brake_us": at(f"{_CLOCKS}_counters/{_CLOCKS}_counters_hw_power_brake", microseconds),
    },
    "temperature": {
        "gpu_c": at("temperature/gpu_temp", whole),
        "memory_c": at("temperature/memory_temp", whole),
        "margin_c": at("temperature/gpu_temp_tlimit", whole),
        "shutdown_c": at("temperature/gpu_temp_max_threshold", whole),
        "slowdown_c": at("temperature/gpu_temp_slow_threshold", whole),
        "operating_max_c": at("temperature/gpu_temp_max_gpu_threshold", whole),
        "memory_max_c": at("temperature/gpu_temp_max_mem_threshold", whole),
    },
    "power": {
        "draw_w": either(
            at("gpu_power_readings/average_power_draw", number),
            at("gpu_power_readings/instant_power_draw", number),
            _power("power_draw", "power_draw"),
        ),
        "limit_w": _power("current_power_limit", "enforced_power_limit"),
        "requested_w": _power("requested_power_limit", "power_limit"),
        "default_w": _power("default_power_limit", "default_power_limit"),
        "max_w": _power("max_power_limit", "max_power_limit"),
    },
    "ecc": {
        "enabled": at("ecc_mode/current_ecc", truth),
        "pending": at("ecc_mode/pending_ecc", truth),
        "volatile": _counted("volatile"),
        "aggregate": _counted("aggregate"),
        "sram_threshold_exceeded": at("ecc_errors/aggregate/sram_threshold_exceeded", truth),
    },
    "retired_pages": {
        "single_bit": at("retired_pages/multiple_single_bit_retirement/retired_count", whole),
        "double_bit": at("retired_pages/double_bit_retirement/retired_count", whole),
        "pending": either(at("retired_pages/pending_retirement", truth), at("retired_pages/pending_blacklist", truth)),
    },
    "remap": {
        "correctable": at(f"{_ROWS}/remapped_row_corr", whole),
        "uncorrectable": at(f"{_ROWS}/remapped_row_unc", whole),
        "pending": at(f"{_ROWS}/remapped_row_pending", truth),
        "failed": at(f"{_ROWS}/remapped_row_failure", truth),
        "histogram": {left: at(f"{_HISTOGRAM}_{left}", whole) for left in ("max", "high", "partial", "low", "none")},
    },
    "repair": {
        "channel_pending": at("ecc_errors/channel_repair_pending", truth),
        "tpc_pending": at("ecc_errors/tpc_repair_pending", truth),
    },
    "nvlink": at("nvlink"),  # never printed: unsupported by this source
    "fabric": {
        "state": at("fabric/state", name),
        "status": at("fabric/status", name),
        "clique": either(at("fabric/cliqueId", whole), at("fabric/clique_id", whole)),
        "cluster": either(at("fabric/clusterUuid"), at("fabric/cluster_uuid")),
        "health": {
            "summary": at(f"{_HEALTH}/summary", name),
            "degraded_bandwidth": at(f"{_HEALTH}/bandwidth", degraded),
            "route_recovery": at(f"{_HEALTH}/route_recovery_in_progress", truth),
            "route_unhealthy": at(f"{_HEALTH}/route_unhealthy", truth),
            "access_timeout_recovery": at(f"{_HEALTH}/access_timeout_recovery", truth),
            "incorrect_configuration": at(f"{_HEALTH}/incorrect_configuration", name),
        },
    },
    "mig": {"enabled": at("mig_mode/current_mig", truth), "pending": at("mig_mode/pending_mig", truth)},
    "persistence": at("persistence_mode", truth),
    "compute_mode": at("compute_mode", name),
    "memory": {
        "total_bytes": at("fb_memory_usage/total", mebibytes),
        "used_bytes": at("fb_memory_usage/used", mebibytes),
        "free_bytes": at("fb_memory_usage/free", mebibytes),
    },
    "utilisation": {
        "gpu_percent": at("utilization/gpu_util", whole),
        "memory_percent": at("utilization/memory_util", whole),
    },
    "recovery_action": at("gpu_recovery_action", name),
}
