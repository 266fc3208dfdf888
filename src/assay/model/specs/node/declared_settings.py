"""Which fields of a node spec are settings, the role of `assay.fleet` that brings each, and what reads otherwise.

`SETTING_ROLES` and `NOT_SETTABLE` together name every field. `assay check` refuses a declared setting whose role is not
in `playbooks/configure.yml`. CorrectionRules say which settings a node in service gets where it is, and how often.
Adapters are named by place: an HCA by its PCI address, a NIC by its interface.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from assay.model.backoff import Backoff
from assay.model.facts import frozen
from assay.model.reading import parse_reading
from assay.model.specs.node.host_settings import (
    FirmwareSettingValue,
    FirmwareSettingValues,
    make_chrony_file,
    make_drop_ins,
)
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.spec_document import StrictModel
from assay.model.text.lists import suggest_nearest


@frozen
class SettingMismatch:
    """A setting by its path in the node spec (`bios.QuietBoot`), with the wanted and the seen value as texts.

    A value that cannot be read is seen as `(KIND: REASON)`, which equals no value.
    """

    name: str
    wanted: str
    seen: str

    @property
    def is_unread(self) -> bool:
        """Whether there is no value: the reading failed, is unsupported or absent."""
        return self.seen.startswith("(")


def format_setting_mismatches(mismatches: Iterable[SettingMismatch]) -> str:
    """Return mismatches as one line of text."""
    return ", ".join(f"{mismatch.name} is {mismatch.seen}, expected {mismatch.wanted}" for mismatch in mismatches)


def format_setting_diff(header: str, mismatches: Sequence[SettingMismatch]) -> dict[str, str]:
    """Return mismatches as a difference that Ansible shows with --diff."""
    return {
        "header": header,
        "before": "".join(f"{mismatch.name}: {mismatch.seen}\n" for mismatch in mismatches),
        "after": "".join(f"{mismatch.name}: {mismatch.wanted}\n" for mismatch in mismatches),
    }


def format_reading(tree: Any, *path: str) -> str:
    """Return the reading at a path of a tree as text; `(KIND: REASON)` if it has no value, `absent` if it is missing.

    Redfish's and JSON's booleans are `true` and `false`; the items of a list are separated by blanks.
    """
    for step in path:
        if isinstance(tree, Mapping) and step in tree:
            tree = tree[step]
        elif parse_reading(tree) is None:
            return "absent"
    reading = parse_reading(tree)
    if reading is None:
        return "(failed: it is no reading)"
    if reading.kind != "value":
        return f"({reading.kind}: {reading.reason})"
    if isinstance(reading.value, bool):
        return str(reading.value).lower()
    return " ".join(map(str, reading.value)) if isinstance(reading.value, list) else str(reading.value)


PRINTED_VALUE = re.compile(r"(.+)\((\d+)\)")


def list_adapters(spec: NodeSpec) -> Iterator[tuple[str, str, FirmwareSettingValues]]:
    """Yield (name, place, declared settings) of the adapters that the spec declares settings of."""
    given = spec.hca_settings
    adapters = [(hca.name, hca.pci.lower(), given.hcas) for hca in spec.hcas]
    adapters += [(nic.name, nic.name, given.nics) for nic in spec.nics]
    for name, place, common in adapters:
        if settings := {**common, **given.by_name.get(name, {})}:
            yield name, place, settings


def is_printed_as(wanted: FirmwareSettingValue, seen: str) -> bool:
    """Say whether mstconfig prints a declared value as `seen`: by its name, its number, or both (`ETH(2)`)."""
    match = PRINTED_VALUE.fullmatch(seen)
    names = {name.lower() for name in (seen, *(match.groups() if match else ()))}
    return bool(names & {str(wanted).lower(), *({str(int(wanted))} if isinstance(wanted, bool) else ())})


def list_hca_settings(spec: NodeSpec, tree: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (name, wanted, seen) of every declared firmware setting. `seen` is as wanted only if it stays so."""
    for name, place, settings in list_adapters(spec):
        for setting, wanted in settings.items():
            text = str(wanted)
            now = format_reading(tree, "adapter_settings", place, setting, "current")
            next_boot = format_reading(tree, "adapter_settings", place, setting, "next_boot")
            yield f"hca_settings.{name}.{setting}", text, _describe(wanted, text, now, next_boot)


def _describe(wanted: FirmwareSettingValue, text: str, now: str, next_boot: str) -> str:
    for seen in (now, next_boot):
        if seen.startswith("(") or seen == "absent":
            return seen
    if not is_printed_as(wanted, now):
        return now if now == next_boot else f"{now}, and {next_boot} from the next boot on"
    return text if is_printed_as(wanted, next_boot) else f"{next_boot} from the next boot on"


SettingHome = Literal["bmc", "device", "kernel", "disk"]
SettingApplication = Literal["at_once", "idle", "zap"]
"""From harmless to disturbing."""


@frozen
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
    "bmc.ipmi_lan": SettingRole("bmc_settings", "bmc", "at_once"),
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
        (
            "product",
            "height_u",
            "rack",
            "gpus",
            "hcas",
            "nics.name",
            "nics.speed_mbps",
            "nvme",
            "disks",
            "psus",
            "fans",
            "tpm",
        ),
        "is hardware",
    ),
    **dict.fromkeys(
        ("cpu_sockets", "cpu_threads", "memory_gib", "leak_detectors", "host.dimms", "host.numa_nodes"), "is hardware"
    ),
    "bmc.network": "is kept apart by switches and firewalls",
    "wipe": "says how the action `wipe` erases drives",
    "usual_faults": "says what of a log is usual",
    "mounts": "is mounted by the image or by autofs",
    "roce": "is set by the image, together with the switches",
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
    if (field or part) not in holder.model_fields_set or given is None or given in ([], {}, ""):
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
            place: {name: str(wanted) for name, wanted in settings.items()}
            for _, place, settings in list_adapters(spec)
        },
        "on_disk": spec.host.root == "disk",
    }


SETTING_PATHS = sorted(SETTING_ROLES, key=len, reverse=True)
Contradiction = tuple[str, int, str, str]
"""The list, the number of its entry, what is wrong with it, and the fix."""


class CorrectionRules(StrictModel):
    """Settings that a node in service gets without leaving service, by fault rules with `remedy: configure`.

    A setting is named by its path in the node spec, such as `host.sysctls`. What stands in no list is left to people.

    - `at_once`: settings that a node gets while jobs run there. `idle`: settings that it gets while it has no job; it
      is cordoned meanwhile.
    - `times`: so often within `window_hours` a node gets a setting. If it differs once more, another tool changes it
      too, and people get a ticket. `waits_minutes`: how long assay waits before the second time, the third …
    - `per_hour`: how many corrections may begin in the whole fleet.
    """

    at_once: list[str] = Field(default=[])
    idle: list[str] = Field(default=[])
    times: int = Field(default=3, ge=1, le=20)
    window_hours: float = Field(default=168, gt=0)
    waits_minutes: list[float] = Field(default=[30, 240], min_length=1)
    per_hour: int = Field(default=60, ge=1)
    source: str = ""

    @property
    def backoff(self) -> Backoff:
        """The waits between corrections of the same setting, in seconds."""
        return Backoff(tuple(minutes * 60 for minutes in self.waits_minutes), factor=1.0)

    def find_application(self, setting: str) -> SettingApplication:
        """Return when a node in service gets a setting by the policy; `zap` if it does not get it there."""
        return "at_once" if setting in self.at_once else "idle" if setting in self.idle else "zap"

    def find_contradictions(self) -> Iterator[Contradiction]:
        """Yield the entries that name no setting, or ask for more than the setting allows."""
        for name, listed in (("at_once", self.at_once), ("idle", self.idle)):
            for number, setting in enumerate(listed):
                role = SETTING_ROLES.get(setting)
                if role is None:
                    fix = suggest_nearest(setting, SETTING_ROLES) or f"use one of {', '.join(SETTING_ROLES)}"
                    yield name, number, f"{setting!r} is no setting of a node spec", fix
                elif role.applied == "zap":
                    yield name, number, f"{setting} needs a restart or a reset, so only zap brings it", "remove it here"
                elif role.applied == "idle" and name == "at_once":
                    yield name, number, f"{setting} may disturb a running job", "move it to corrections.idle"
                elif name == "idle" and setting in self.at_once:
                    yield name, number, f"{setting} stands in corrections.at_once too", "remove one of the two"


def find_setting(name: str) -> str:
    """Return the path of `SETTING_ROLES` that a name below it belongs to, "" for none.

    `host.sysctls.vm.swappiness` belongs to `host.sysctls`, and `nics.eth0.mtu` to `nics.mtu`.
    """
    if path := next((path for path in SETTING_PATHS if name == path or name.startswith(f"{path}.")), ""):
        return path
    first, last = name.partition(".")[0], name.rpartition(".")[2]
    return f"{first}.{last}" if f"{first}.{last}" in SETTING_ROLES else ""


def needs_idle_node(setting: str, text: str) -> bool:
    """Whether a setting needs an idle node; in a mapping or list, whether an entry that a text names does."""
    role = SETTING_ROLES[setting]
    return role.applied != "at_once" or any(name in text for name in role.idle_names)
