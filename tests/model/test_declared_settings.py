"""Every field of a node spec is brought by a role or named as not settable. The probe's readings are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from assay.model.configuration.declared_settings import (
    NESTED,
    NOT_SETTABLE,
    SETTING_ROLES,
    list_declared_settings,
    make_role_values,
)
from assay.model.configuration.host_settings import find_host_mismatches, is_unknown, needs_image, needs_restart
from assay.model.specs.node.bmc_settings import BmcSpec
from assay.model.specs.node.gpu_settings import GpuSettings
from assay.model.specs.node.node_spec import BootSpec, HostSpec, NicSpec, NodeSpec

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
    "services": {"units": {"chrony": {"value": "active"}}},
    "nic": {"eth0": {"mtu_bytes": {"value": 9000}}},
    "pci": {"0000:1b:00.0": {"iommu": {"value": "identity"}}},
}


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
        }
    }
    assert set(SETTING_ROLES) - set(list_declared_settings(read_spec(**bmc))) == {"bios", "boot.mode", "boot.first"}
    assert not any(path.startswith("bmc.") for path in list_declared_settings(read_spec(bmc={"ntp": {}})))
    nothing: dict[str, Any] = {"host": {}, "boot": {}, "kernel_cmdline": [], "nics": [], "gpu_settings": {}}
    assert list_declared_settings(read_spec(**nothing)) == ["driver", "fabric_manager"]
    assert make_role_values(read_spec())["nic_mtu"] == {"eth0": 9000}
    assert make_role_values(read_spec(gpu_settings={"ecc": False}))["gpu_settings"] == {"ecc": False}
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
    from_device = name in ("gpu_settings.ecc", "gpu_settings.mig")
    known = not is_unknown(mismatch)
    assert known == (not seen.startswith(("(failed", "(unsupported")))
    assert needs_image([mismatch]) == (from_image and known)
    assert needs_restart([mismatch], "disk") == ((from_image or from_device) and known)
    assert needs_restart([mismatch], "memory") == (from_device and known)


def test_a_node_that_does_not_answer_has_nothing_as_declared():
    mismatches = find_host_mismatches(read_spec(), {"failed": "no route"})
    assert {mismatch.seen for mismatch in mismatches} == {"(failed: no route)"}
    assert len(mismatches) == 22


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
