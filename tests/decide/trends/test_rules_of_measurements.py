"""Each measurement falls under the rule that a reader expects: of shipped checks, of exporters, and of other tools."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from assay.model.specs.trend_rules import TrendRules
from tests.support.places import ROOT

RULES = TrendRules.model_validate(yaml.safe_load((ROOT / "specs/trends/default.yaml").read_text()))
OF_CHECKS = {
    "memory": (
        "banks_with_few_spares banks_without_spares corrected corrected_ever ecc_uncorrected memory_errors "
        "rows_remapped rows_remapped_early sram_uncorrected stressapptest_errors uncorrected"
    ),
    "heat": (
        "fan_spread fans gpu_temperature inlet inlet_spread memory_temperature module_temperature nvme_temperature "
        "slowed_by_heat slowest_fan switch_temperature temperature_drift temperature_score thermal_margin"
    ),
    "speed": (
        "above_fleet application_clock below_fleet bus_bandwidth clock copy_spread device_to_device gpu_burn "
        "gpu_burn_spread gpu_fryer hpl ib_write ib_write_gpu memory_clock nvme_read rate site_training_speed "
        "storage_read storage_write tensor_speed tensor_spread training_speed training_spread"
    ),
    "optics": "ber_drift ber_score bias_drift bias_score fec_score light_score rx_power rx_power_drift tx_power",
    "power": "drawn input_voltage power_cap power_limit power_limit_w psu_share psus_well",
    "drives": "media_errors nvme_size spare used",
    "silence": "scan_gap",
    "links": (
        "aer_correctable aer_fatal aer_nonfatal buffer_overrun carrier_changes constraint_in constraint_out discards "
        "downs downs_a_day errors_score link_downed link_error_recovery link_errors link_integrity management_drops "
        "nvlink_crc_errors nvlink_errors nvlink_recoveries nvlinks_up out_of_buffer pcie_errors pcie_generation "
        "pcie_replays pcie_width receive_errors received_errors recoveries remote_errors symbol_error symbol_errors "
        "vl15_dropped"
    ),
    "others": (
        "bmc_clock_off clock_offset critical_events file_system_used golden_steps inodes_used leak_detectors "
        "load_per_thread members_up numa_nodes root_fs_used silent_units suspect_units transparent_hugepages "
        "wrong_results zombies"
    ),
}
"""Names that were under a wrong rule once are among those of `others`: `transparent` has a spare, `members` a BER."""
OF_EXPORTERS = {
    "memory": (
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL DCGM_FI_DEV_ECC_DBE_VOL_TOTAL DCGM_FI_DEV_ECC_SBE_AGG_TOTAL "
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL DCGM_FI_DEV_RETIRED_SBE DCGM_FI_DEV_RETIRED_DBE "
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_ROW_REMAP_FAILURE"
    ),
    "heat": "DCGM_FI_DEV_GPU_TEMP DCGM_FI_DEV_MEMORY_TEMP",
    "speed": "DCGM_FI_DEV_SM_CLOCK DCGM_FI_DEV_MEM_CLOCK",
    "power": "DCGM_FI_DEV_POWER_USAGE DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
    "links": (
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER DCGM_FI_DEV_PCIE_LINK_GEN DCGM_FI_DEV_PCIE_LINK_WIDTH "
        "node_network_carrier_changes_total node_network_receive_errs_total node_network_receive_drop_total "
        "node_network_transmit_errs_total node_infiniband_symbol_error_total node_infiniband_link_downed_total "
        "node_infiniband_link_error_recovery_total node_infiniband_port_errors_received_total "
        "node_infiniband_local_link_integrity_errors_total node_infiniband_port_discards_transmitted_total "
        "node_infiniband_excessive_buffer_overrun_errors_total node_infiniband_vl15_dropped_total"
    ),
    "others": "DCGM_FI_DEV_XID_ERRORS DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_FB_USED node_timex_offset_seconds node_load1",
}
"""As specs/monitoring/exporters.yaml names them."""
OF_OTHER_TOOLS = {
    "memory": "node_edac_correctable_errors_total DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE",
    "heat": (
        "gpu_temp memory_temp temperature_c node_hwmon_temp_celsius smart_194_temperature smartctl_device_temperature "
        "DCGM_FI_DEV_THERMAL_VIOLATION DCGM_FI_DEV_FAN_SPEED FAN1 fan_duty"
    ),
    "speed": "sm_mhz copy_bandwidth DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "optics": "bias_current effective_ber",
    "power": "draw_power gpu_power DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION DCGM_FI_DEV_POWER_VIOLATION",
    "drives": "smart_187 smart_5_reallocated smartctl_device_percentage_used smartctl_device_available_spare",
    "silence": "readings reading_errors",
    "links": (
        "port_rcv_errors port_xmit_discards rx_errors tx_dropped DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL "
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"
    ),
    "others": "DCGM_FI_PROF_PCIE_TX_BYTES DCGM_FI_PROF_NVLINK_TX_BYTES DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
}


def _list_names(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, rule) for rule, names in table.items() for name in names.split()]


@pytest.mark.parametrize(("name", "rule"), [*_list_names(OF_CHECKS), *_list_names(OF_EXPORTERS)])
def test_what_assay_reads_falls_under_the_rule_of_its_kind(name: str, rule: str) -> None:
    assert RULES.find_rule(name) == rule
    assert RULES.find_rule(f"{name} of test_any") == rule, "several checks take it"


@pytest.mark.parametrize(("name", "rule"), _list_names(OF_OTHER_TOOLS))
def test_names_of_other_tools_fall_under_the_rule_of_their_kind(name: str, rule: str) -> None:
    assert RULES.find_rule(name) == rule


def test_the_tables_name_what_there_is() -> None:
    measured = {name for file in (ROOT / "suites").rglob("*.py") for name in _list_measured(file)}
    assert {name for name, _ in _list_names(OF_CHECKS)} <= measured
    exported = (ROOT / "specs/monitoring/exporters.yaml").read_text()
    assert [name for name, _ in _list_names(OF_EXPORTERS) if name not in exported] == []


def _list_measured(file: Path) -> Iterator[str]:
    """Yield the texts of each call of `measure`, and of the rows that a loop gives it."""
    tree = ast.parse(file.read_text())
    if any(isinstance(node, ast.Name) and node.id == "measure" for node in ast.walk(tree)):
        yield from (
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )


def test_only_what_a_check_reads_as_a_count_of_a_whole_life_is_declared_as_a_counter() -> None:
    counters = RULES.change.counters
    names = {name for names in OF_CHECKS.values() for name in names.split()}
    counted = {name for name in names if any(fnmatchcase(name, pattern) for pattern in counters)}
    assert counted == {"rows_remapped", "rows_remapped_early", "corrected_ever"}
    source = (ROOT / "suites/production/test_gpu.py").read_text()
    check = source.partition("def test_corrected_memory_errors(")[2].partition("@pytest")[0]
    assert "corrected of test_corrected_memory_errors" in counters, "host memory has a growth of this name"
    assert 'measure("corrected", gpu.ecc.volatile.corrected' in check
    assert "since_last_pass" not in check
