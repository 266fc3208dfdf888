"""Which fields of a node spec are settings, and the role of `assay.fleet` that brings each one.

`SETTING_ROLES` and `NOT_SETTABLE` together name every field. `assay check` refuses a declared setting whose role is not
in `playbooks/configure.yml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from assay.model.specs.node.hca_settings_comparison import format_firmware_setting, list_adapters
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.node.unit_settings import make_chrony_file, make_drop_ins
from assay.model.specs.spec_document import StrictModel

SettingHome = Literal["bmc", "device", "kernel", "disk"]
SettingApplication = Literal["at_once", "idle", "zap"]
APPLICATIONS: tuple[SettingApplication, ...] = get_args(SettingApplication)
"""From harmless to disturbing."""


@dataclass(frozen=True, slots=True)
class SettingRole:
    """The role that brings a setting, and where the setting lives.

    `home`: `bmc` stays whatever the host boots, and so does `device`, which a GPU or adapter keeps itself. `kernel`
    lives in the running kernel: a node whose root is in memory gets it at each boot, any other node also has it on
    disk. `disk` comes from the disk or the image that boots, so a node whose root is in memory gets it only with
    another image.

    `applied` says when a node in service may get the setting without leaving service. A new row says it, with the
    reason in a comment: `at_once` if bringing it disturbs no running job (the kernel or BMC takes it as it runs),
    `idle` if it needs no restart but may disturb a job, `zap` if it needs a reset or restart, or if nobody knows.
    `idle_names` are entries of an `at_once` mapping or list that need an idle node all the same.
    """

    role: str
    home: SettingHome
    applied: SettingApplication = "zap"
    idle_names: tuple[str, ...] = ()


SETTING_ROLES: Mapping[str, SettingRole] = {
    "bios": SettingRole("system_settings", "bmc"),
    "boot.mode": SettingRole("system_settings", "bmc"),
    "boot.secure": SettingRole("system_settings", "bmc"),
    "boot.first": SettingRole("system_settings", "bmc"),
    # DMTF DSP0266: a BMC applies what is no pending setting when it is written. The host does not notice.
    "bmc.power_restore": SettingRole("bmc_settings", "bmc", "at_once"),
    "bmc.ntp": SettingRole("bmc_settings", "bmc", "at_once"),
    "bmc.syslog": SettingRole("bmc_settings", "bmc", "at_once"),
    "bmc.accounts": SettingRole("bmc_settings", "bmc", "at_once"),
    # sysctl(8) writes a running kernel. A smaller pool of huge pages (hugetlbpage.rst) fails a job that counts on it.
    "host.sysctls": SettingRole("sysctls", "kernel", "at_once", idle_names=("vm.nr_hugepages",)),
    # Our own judgement: a module may claim devices that a job uses.
    "host.modules": SettingRole("kernel_modules", "kernel", "idle"),
    # A stopped service serves nobody. The fabric manager sets NVSwitches up again when it starts (its user guide).
    "host.services": SettingRole("services", "kernel", "at_once", idle_names=("nvidia-fabricmanager",)),
    # transhuge.rst: the choice counts for new memory; pages in use stay as they are.
    "host.transparent_hugepages": SettingRole("transparent_hugepages", "kernel", "at_once"),
    # modprobe.d(5): a module takes its options when it loads. That of a driver in use needs a restart.
    "host.module_options": SettingRole("module_options", "disk"),
    # hugetlbpage.rst: a smaller pool fails a job that counts on it, and a larger one takes its memory.
    "host.hugepages": SettingRole("hugepages", "kernel", "idle"),
    # Our own judgement: the unit starts anew, and nobody knows whom that disturbs.
    "host.unit_settings": SettingRole("unit_settings", "kernel", "idle"),
    # chronyc(1), reload sources: chrony takes other servers while it runs.
    "host.time_servers": SettingRole("time_servers", "kernel", "at_once"),
    # Our own judgement: nobody knows what the command disturbs that applies a file.
    "host.files": SettingRole("host_files", "kernel", "idle"),
    # Documentation/admin-guide/pm/cpufreq.rst: the governor of a policy may be changed at run time.
    "host.governor": SettingRole("cpu_governor", "kernel", "at_once"),
    # Our own judgement: many drivers set their queues up again, and packets get lost meanwhile.
    "nics.mtu": SettingRole("nic_mtu", "kernel", "idle"),
    # NVML API reference: this mode only keeps the driver loaded when nobody uses the GPU.
    "gpu_settings.persistence": SettingRole("gpu_settings", "kernel", "at_once"),
    # nvidia-smi's manual: the mode counts for processes that start. Clocks and power change how fast a job runs.
    "gpu_settings.compute_mode": SettingRole("gpu_settings", "kernel", "idle"),
    "gpu_settings.application_clocks": SettingRole("gpu_settings", "kernel", "idle"),
    "gpu_settings.power_limit_w": SettingRole("gpu_settings", "kernel", "idle"),
    # The GPU keeps ECC itself; it counts from the next reset. MIG needs a GPU that nobody uses, before Hopper a reset.
    "gpu_settings.ecc": SettingRole("gpu_settings", "device"),
    "gpu_settings.mig": SettingRole("gpu_settings", "kernel"),
    # mstconfig(1): an adapter keeps its settings itself, and loads them when it starts.
    "hca_settings": SettingRole("hca_settings", "device"),
    # Kernel, command line and driver need a restart, BIOS and boot settings a reset: `zap`.
    "host.kernel": SettingRole("kernel_version", "disk"),
    "kernel_cmdline": SettingRole("kernel_command_line", "disk"),
    "host.iommu": SettingRole("kernel_command_line", "disk"),
    "driver": SettingRole("gpu_driver", "disk"),
    "fabric_manager": SettingRole("fabric_manager", "disk"),
}
NOT_SETTABLE: Mapping[str, str] = {
    **dict.fromkeys(("kind", "name", "extends", "description", "owner", "stands_in"), "says what the document is"),
    **dict.fromkeys(
        ("product", "height_u", "rack", "gpus", "hcas", "nics.name", "nics.speed_mbps", "nvme", "psus", "fans"),
        "is hardware",
    ),
    **dict.fromkeys(
        ("cpu_sockets", "cpu_threads", "memory_gib", "leak_detectors", "host.dimms", "host.numa_nodes"), "is hardware"
    ),
    "wipe": "says how the action `wipe` erases drives",
    "host.root": "says how the node boots",
    "firmware": "names the firmware bundle, which playbooks/zap.yml brings",
    **dict.fromkeys(("limits", "dcgm_optional_tests"), "says what a measurement must reach"),
}
NESTED = ("host", "boot", "bmc", "nics", "gpu_settings")
"""The fields of NodeSpec whose own fields are settings."""


def list_declared_settings(spec: NodeSpec) -> list[str]:
    """Return the settings that a spec declares, as paths of `SETTING_ROLES`."""
    return [path for path in SETTING_ROLES if _is_declared(spec, path)]


def _is_declared(spec: NodeSpec, path: str) -> bool:
    part, _, field = path.partition(".")
    if part == "nics":
        return any(nic.mtu for nic in spec.nics)
    holder = getattr(spec, part) if field else spec
    given = getattr(holder, field or part)
    if (field or part) not in holder.model_fields_set or given is None or given in ([], {}):
        return False
    return not isinstance(given, StrictModel) or bool(given.model_fields_set)


def make_role_values(spec: NodeSpec) -> dict[str, Any]:
    """Return what each role of the host gets from a spec: nothing ("", [], {}) means that nothing is declared."""
    return {
        "sysctls": dict(spec.host.sysctls),
        "kernel_modules": list(spec.host.modules),
        "module_options": {module: dict(options) for module, options in spec.host.module_options.items()},
        "unit_settings": make_drop_ins(spec.host.unit_settings),
        "time_servers": make_chrony_file(spec.host.time_servers),
        "hugepages": dict(spec.host.hugepages),
        "services": list(spec.host.services),
        "transparent_hugepages": spec.host.transparent_hugepages or "",
        "cpu_governor": spec.host.governor or "",
        "nic_mtu": {nic.name: nic.mtu for nic in spec.nics if nic.mtu},
        "kernel_version": spec.host.kernel or "",
        "kernel_command_line": list(spec.kernel_cmdline),
        "gpu_driver": spec.driver,
        "fabric_manager": spec.fabric_manager or "",
        "host_files": {path: file.model_dump(exclude_none=True) for path, file in spec.host.files.items()},
        "gpu_settings": spec.gpu_settings.model_dump(exclude_none=True),
        "hca_settings": {
            place: {name: format_firmware_setting(wanted) for name, wanted in settings.items()}
            for _, place, settings in list_adapters(spec)
        },
        "on_disk": spec.host.root == "disk",
    }
