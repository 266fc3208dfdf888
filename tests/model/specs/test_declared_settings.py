"""Every field of a node spec is brought by a role or named as not settable. The probe's readings are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from assay.model.specs.node.bmc_settings import BmcSpec
from assay.model.specs.node.declared_settings import (
    NESTED,
    NOT_SETTABLE,
    SETTING_ROLES,
    is_printed_as,
    list_declared_settings,
    make_role_values,
)
from assay.model.specs.node.host_settings import GpuSettings
from assay.model.specs.node.node_spec import BootSpec, HostSpec, NicSpec, NodeSpec
from assay.model.specs.node.settings_comparison import (
    find_host_mismatches,
    is_unknown,
    make_probe_arguments,
    needs_image,
    needs_restart,
)

SPEC: dict[str, Any] = {
    "kind": "NodeSpec",
    "name": "small",
    "product": "P",
    "gpus": {"model": "G", "pci": ["0000:1b:00.0", "0000:43:00.0"]},
    "hcas": [],
    "nics": [{"name": "eth0", "speed_mbps": 1000, "mtu": 9000}],
    "nvme": {"count": 0, "size_gb": 1},
    "psus": {"count": 0, "needed": 0},
    "fans": 1,
    "cpu_sockets": 1,
    "cpu_threads": 1,
    "memory_gib": 1,
    "driver": "570",
    "firmware": "b",
    "fabric_manager": "570",
    "kernel_cmdline": ["iommu=pt", "quiet"],
    "boot": {"secure": False},
    "host": {
        "kernel": "6.8",
        "governor": "performance",
        "iommu": "identity",
        "transparent_hugepages": "madvise",
        "services": ["chrony"],
        "modules": ["nvidia"],
        "sysctls": {"vm.swappiness": "10"},
        "hugepages": {"2048kB": 8},
        "module_options": {"nvidia": {"NVreg_A": "1"}},
        "unit_settings": {"a.service": {"LimitMEMLOCK": "infinity"}},
        "time_servers": ["ntp1", "ntp2"],
        "files": {"/etc/a.conf": {"content": "a\n", "mode": "0600"}},
    },
    "hca_settings": {"nics": {"SRIOV_EN": True}, "by_name": {"eth0": {"NUM_OF_VFS": 8, "LINK_TYPE_P1": "eth"}}},
    "gpu_settings": {
        "persistence": True,
        "ecc": True,
        "mig": False,
        "compute_mode": "default",
        "application_clocks": {"memory_mhz": 2619, "graphics_mhz": 1980},
        "power_limit_w": 650,
    },
}
GPU: dict[str, Any] = {
    "persistence": {"value": True},
    "ecc": {"enabled": {"value": True}},
    "mig": {"enabled": {"value": False}},
    "compute_mode": {"value": "default"},
    "clocks": {"application_memory_mhz": {"value": 2619}, "application_mhz": {"value": 1980}},
    "power": {"requested_w": {"value": 650.0}},
}
UNIT_SETTING = "host.unit_settings.a.service"
NVIDIA_OPTIONS = ("kernel", "module_options", "nvidia")
A_SHA256 = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7"
TREE: dict[str, Any] = {
    "files": {"/etc/a.conf": {"sha256": {"value": A_SHA256}, "mode": {"value": "0600"}}},
    "unit_settings": {"a.service": {"LimitMEMLOCK": {"value": "infinity"}}},
    "time": {"sources": {"value": ["ntp1", "ntp2", "other"]}},
    "host": {
        "kernel": {"value": "6.8"},
        "cmdline": {"value": "ro quiet iommu=pt"},
        "cpu": {"governors": {"value": ["performance"]}},
    },
    "kernel": {
        "versions": {"nvidia": {"value": "570"}, "fabric_manager": {"value": "570"}},
        "transparent_hugepages": {"value": "madvise"},
        "hugepages": {"2048kB": {"total": {"value": 8}}},
        "module_options": {"nvidia": {"NVreg_A": {"value": "1"}}},
        "modules": {"value": ["nvidia", "nvme"]},
        "sysctl": {"vm.swappiness": {"value": "10"}},
    },
    "gpu": {"devices": {"0000:1b:00.0": GPU, "0000:43:00.0": GPU}},
    "adapter_settings": {
        "eth0": {
            "SRIOV_EN": {"current": {"value": "True(1)"}, "next_boot": {"value": "True(1)"}},
            "NUM_OF_VFS": {"current": {"value": "8"}, "next_boot": {"value": "8"}},
            "LINK_TYPE_P1": {"current": {"value": "ETH(2)"}, "next_boot": {"value": "ETH(2)"}},
        }
    },
    "services": {"units": {"chrony": {"value": "active"}}},
    "nic": {"eth0": {"mtu_bytes": {"value": 9000}}},
    "pci": {"0000:1b:00.0": {"iommu": {"value": "identity"}}},
}


VFS = ("adapter_settings", "eth0", "NUM_OF_VFS")
SECOND_GPU = ("gpu", "devices", "0000:43:00.0")


SYSLOG = [{"server": "log.example", "port": 514, "protocol": "SyslogUDP"}]


def read_spec(**more: Any) -> NodeSpec:
    return TypeAdapter(NodeSpec).validate_python(SPEC | more)


def list_fields() -> Iterator[str]:
    models = dict(zip(NESTED, (HostSpec, BootSpec, BmcSpec, NicSpec, GpuSettings), strict=True))
    for name in NodeSpec.model_fields:
        yield from (f"{name}.{inner}" for inner in models[name].model_fields) if name in models else (name,)


def test_every_field_of_a_node_spec_has_a_role_or_a_reason():
    assert sorted([*SETTING_ROLES, *NOT_SETTABLE]) == sorted(list_fields())


def test_only_what_a_spec_gives_is_declared():
    bmc = {
        "bmc": {
            "power_restore": "LastState",
            "ntp": {"enabled": False},
            "syslog": SYSLOG,
            "accounts": {"complete": True},
            "ipmi_lan": False,
        }
    }
    assert set(SETTING_ROLES) - set(list_declared_settings(read_spec(**bmc))) == {"bios", "boot.mode", "boot.first"}
    assert not any(path.startswith("bmc.") for path in list_declared_settings(read_spec(bmc={"ntp": {}})))
    nothing: dict[str, Any] = {
        "host": {},
        "boot": {},
        "kernel_cmdline": [],
        "nics": [],
        "gpu_settings": {},
        "hca_settings": {},
    }
    assert list_declared_settings(read_spec(**nothing)) == ["driver", "fabric_manager"]
    assert make_role_values(read_spec())["nic_mtu"] == {"eth0": 9000}
    assert make_role_values(read_spec(gpu_settings={"ecc": False}))["gpu_settings"] == {"ecc": False}
    adapter = {"SRIOV_EN": "True", "NUM_OF_VFS": "8", "LINK_TYPE_P1": "eth"}
    assert make_role_values(read_spec())["hca_settings"] == {"eth0": adapter}
    assert make_role_values(read_spec(host={"root": "memory"}))["on_disk"] is False


def test_a_host_as_declared_has_no_mismatch():
    assert find_host_mismatches(read_spec(), TREE) == []


@pytest.mark.parametrize(
    ("place", "leaf", "name", "seen"),
    [
        (("host", "kernel"), {"value": "6.5"}, "host.kernel", "6.5"),
        (("host", "cmdline"), {"value": "ro quiet"}, "kernel_cmdline", "absent"),
        (
            ("host", "cpu"),
            {"governors": {"value": ["performance", "powersave"]}},
            "host.governor",
            "performance powersave",
        ),
        (("kernel", "versions", "nvidia"), {"value": "550"}, "driver", "550"),
        (("kernel", "versions", "nvidia"), {"absent": "no file"}, "driver", "(absent: no file)"),
        (("kernel", "versions", "fabric_manager"), {"value": "550"}, "fabric_manager", "550"),
        (("kernel", "modules"), {"value": ["nvme"]}, "host.modules", "absent"),
        (("kernel", "hugepages", "2048kB", "total"), {"value": 7}, "host.hugepages.2048kB", "7"),
        (("kernel", "hugepages"), {"absent": "empty"}, "host.hugepages.2048kB", "(absent: empty)"),
        ((*NVIDIA_OPTIONS, "NVreg_A"), {"value": "0"}, "host.module_options.nvidia.NVreg_A", "0"),
        ((*NVIDIA_OPTIONS, "NVreg_A"), {"unsupported": "x"}, "host.module_options.nvidia.NVreg_A", "(unsupported: x)"),
        (("unit_settings", "a.service", "LimitMEMLOCK"), {"value": "64"}, f"{UNIT_SETTING}.LimitMEMLOCK", "64"),
        (("unit_settings", "a.service"), {"absent": "x"}, f"{UNIT_SETTING}.LimitMEMLOCK", "(absent: x)"),
        (("time", "sources"), {"value": ["ntp1"]}, "host.time_servers", "absent"),
        (("time", "sources"), {"value": []}, "host.time_servers", "absent"),
        (("time",), {"failed": "late"}, "host.time_servers", "(failed: late)"),
        (("kernel", "modules"), {"failed": "late"}, "host.modules", "(failed: late)"),
        (("kernel", "sysctl"), {"vm.swappiness": {"value": "60"}}, "host.sysctls.vm.swappiness", "60"),
        (("kernel", "sysctl"), {}, "host.sysctls.vm.swappiness", "absent"),
        (("kernel", "transparent_hugepages"), {"value": "always"}, "host.transparent_hugepages", "always"),
        (("services", "units"), {"chrony": {"value": "failed"}}, "host.services.chrony", "failed"),
        (("services",), {"failed": "systemctl hung"}, "host.services.chrony", "(failed: systemctl hung)"),
        (("nic", "eth0"), {"mtu_bytes": {"value": 1500}}, "nics.eth0.mtu", "1500"),
        (("pci", "0000:43:00.0"), {"iommu": {"value": "DMA"}}, "host.iommu", "DMA and identity"),
        (("files", "/etc/a.conf"), {"absent": "no file"}, "host.files./etc/a.conf", "(absent: no file)"),
        (("files", "/etc/a.conf", "sha256"), {"value": "f" * 64}, "host.files./etc/a.conf", "sha256 ffffffffffff"),
        (("files", "/etc/a.conf", "mode"), {"value": "0644"}, "host.files./etc/a.conf", "mode 0644"),
        (("files",), {"failed": "late"}, "host.files./etc/a.conf", "(failed: late)"),
        (("pci",), {}, "host.iommu", "(failed: no GPU is on the bus)"),
        ((*SECOND_GPU, "persistence"), {"value": False}, "gpu_settings.persistence", "false and true"),
        ((*SECOND_GPU, "ecc", "enabled"), {"value": False}, "gpu_settings.ecc", "false and true"),
        ((*SECOND_GPU, "ecc", "enabled"), {"unsupported": "no"}, "gpu_settings.ecc", "(unsupported: no) and true"),
        ((*SECOND_GPU, "ecc"), {"failed": "late"}, "gpu_settings.ecc", "(failed: late) and true"),
        ((*SECOND_GPU, "mig", "enabled"), {"value": True}, "gpu_settings.mig", "false and true"),
        ((*SECOND_GPU, "compute_mode"), {"value": "prohibited"}, "gpu_settings.compute_mode", "default and prohibited"),
        ((*SECOND_GPU, "power", "requested_w"), {"value": 600.5}, "gpu_settings.power_limit_w", "600.5 and 650"),
        ((*VFS, "current"), {"value": "4"}, "hca_settings.eth0.NUM_OF_VFS", "4, and 8 from the next boot on"),
        ((*VFS, "next_boot"), {"value": "4"}, "hca_settings.eth0.NUM_OF_VFS", "4 from the next boot on"),
        (VFS, {"current": {"value": "4"}, "next_boot": {"value": "4"}}, "hca_settings.eth0.NUM_OF_VFS", "4"),
        (VFS, {"unsupported": "no"}, "hca_settings.eth0.NUM_OF_VFS", "(unsupported: no)"),
        ((*VFS, "current"), {"failed": "no"}, "hca_settings.eth0.NUM_OF_VFS", "(failed: no)"),
        (
            (*SECOND_GPU, "clocks", "application_mhz"),
            {"value": 1410},
            "gpu_settings.application_clocks",
            "2619 and 1410 and 1980 MHz",
        ),
    ],
)
def test_a_setting_that_reads_otherwise_is_named(place: tuple[str, ...], leaf: Any, name: str, seen: str):
    (mismatch,) = find_host_mismatches(read_spec(), with_leaf(TREE, place, leaf))
    assert (mismatch.name, mismatch.seen) == (name, seen)
    from_image = name in (
        "host.kernel",
        "kernel_cmdline",
        "driver",
        "host.iommu",
        "fabric_manager",
        "host.module_options.nvidia.NVreg_A",
    )
    from_device = name in ("gpu_settings.ecc", "gpu_settings.mig", "hca_settings.eth0.NUM_OF_VFS")
    known = not is_unknown(mismatch)
    assert known == (not seen.startswith(("(failed", "(unsupported")))
    assert needs_image([mismatch]) == (from_image and known)
    assert needs_restart([mismatch], "disk") == ((from_image or from_device) and known)
    assert needs_restart([mismatch], "memory") == (from_device and known)


def test_a_node_that_does_not_answer_has_nothing_as_declared():
    mismatches = find_host_mismatches(read_spec(), {"failed": "no route"})
    assert {mismatch.seen for mismatch in mismatches} == {"(failed: no route)"}
    assert len(mismatches) == 25


@pytest.mark.parametrize(
    ("wanted", "seen", "same"),
    [
        ("ETH", "ETH(2)", True),
        ("eth", "ETH(2)", True),
        (2, "ETH(2)", True),
        ("IB", "ETH(2)", False),
        (1, "ETH(2)", False),
        (True, "True(1)", True),
        (True, "1", True),
        (False, "True(1)", False),
        (16, "16", True),
        (1, "16", False),
        ("_256KB", "_256KB(1)", True),
    ],
)
def test_a_firmware_setting_is_compared_by_name_or_number(wanted: Any, seen: str, *, same: bool):
    assert is_printed_as(wanted, seen) is same


def test_adapters_that_cannot_be_asked_are_no_reason_for_a_restart():
    tree = TREE | {"adapter_settings": {"eth0": {"absent": "mstconfig is not installed"}}}
    mismatches = find_host_mismatches(read_spec(), tree)
    assert {one.seen for one in mismatches} == {"(absent: mstconfig is not installed)"}
    assert not needs_restart(mismatches, "disk")


def test_the_probe_is_asked_for_the_declared_settings_only():
    assert make_probe_arguments(read_spec(hca_settings={})).count("--adapters") == 0
    arguments = make_probe_arguments(read_spec())
    assert arguments[arguments.index("--adapters") + 1] == "eth0=SRIOV_EN+NUM_OF_VFS+LINK_TYPE_P1"


def test_settings_of_an_adapter_that_the_spec_does_not_have_are_refused():
    with pytest.raises(ValidationError, match="'eth9' is neither in hcas nor in nics"):
        read_spec(hca_settings={"by_name": {"eth9": {"SRIOV_EN": True}}})


def with_leaf(tree: Any, place: tuple[str, ...], leaf: Any) -> Any:
    first, *rest = place
    return tree | {first: with_leaf(tree.get(first, {}), tuple(rest), leaf) if rest else leaf}


def test_units_and_chrony_get_files_of_their_own():
    values = make_role_values(read_spec())
    (drop_in,) = values["unit_settings"].items()
    assert drop_in[0] == "/etc/systemd/system/a.service.d/90-assay.conf"
    assert drop_in[1]["content"].splitlines()[1:] == ["[Service]", "LimitMEMLOCK=infinity"]
    assert drop_in[1]["apply_with"].endswith("systemctl try-restart a.service'")
    assert values["time_servers"]["content"].splitlines()[1:] == ["server ntp1 iburst", "server ntp2 iburst"]
    nothing = make_role_values(read_spec(host={}))
    assert (nothing["unit_settings"], nothing["time_servers"]) == ({}, {})
