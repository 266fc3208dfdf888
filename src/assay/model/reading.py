"""What one look at one thing can say: a value, or a stated reason why there is none.

Standard library only: the probe carries this module to the node.

Plain values that know their origin: a reading its path in the evidence, a spec's value its file and line.

Lists and mappings of evidence refuse changes, since many checks read them, and each must see all of them. Readers see a
`list` and a `dict`. Copies (`list(x)`, `copy.deepcopy(x)`) are plain ones.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, NamedTuple, NoReturn, get_args

ReadingTree = dict[str, Any]
"""A branch of an evidence document, or one leaf: an object of one key, such as `{"value": 42}`."""

LOST = "is lost"
"""What drivers and their tools say of a part that no longer answers, in the reason of a failed reading."""
CERTIFICATE_REFUSED = "its certificate"
"""How the reason begins where a BMC does not prove that it is the declared one."""
PROBE_AREAS = (
    "host",
    "gpu",
    "hca",
    "nic",
    "bond",
    "nvme",
    "disk",
    "aer",
    "pci",
    "memory",
    "file_systems",
    "kernel",
    "time",
    "services",
    "files",
    "unit_settings",
    "adapter_settings",
    "tpm",
    "bmc_network",
    "kernel_log",
)
"""The first branches of the channel `probe`, in the order in which the probe prints them."""
MAX_REPORT_BYTES = 16 * 2**20
"""Of a report that a vendor asks for, unpacked: so much the probe reads of one, and so much is kept."""
READ_SYSCTLS = (
    "fs.file-max",
    "fs.inotify.max_user_instances",
    "fs.inotify.max_user_watches",
    "kernel.hung_task_panic",
    "kernel.hung_task_timeout_secs",
    "kernel.numa_balancing",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.softlockup_panic",
    "kernel.threads-max",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.conf.all.arp_announce",
    "net.ipv4.conf.all.arp_ignore",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.ip_forward",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.nr_hugepages",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
)
"""The sysctls that the probe reads."""

ReadingKind = Literal["value", "absent", "unsupported", "failed"]
READING_KINDS: tuple[ReadingKind, ...] = get_args(ReadingKind)


class EvidenceReading(NamedTuple):
    """One of four kinds; `value` is set for kind `value` only, `reason` for the other three."""

    kind: ReadingKind
    value: Any = None
    reason: str = ""


def value(content: Any) -> dict[str, Any]:
    """Return a leaf that was read."""
    return {"value": content}


def absent(reason: str) -> dict[str, str]:
    """Return a leaf for a thing that is not there (no such device, no such file)."""
    return {"absent": reason}


def unsupported(reason: str) -> dict[str, str]:
    """Return a leaf for a question that this hardware or driver cannot answer."""
    return {"unsupported": reason}


def failed(reason: str) -> dict[str, str]:
    """Return a leaf for a question that was asked and not answered (error, deadline, lost GPU)."""
    return {"failed": reason}


def is_reading(tree: Any) -> bool:
    """Whether `tree` is a leaf of an evidence document."""
    if not isinstance(tree, dict) or len(tree) != 1:
        return False
    ((kind, content),) = tree.items()
    return kind == "value" or (kind in READING_KINDS and isinstance(content, str))


def parse_reading(tree: Any) -> EvidenceReading | None:
    """Return the Reading if `tree` is a leaf of an evidence document, None for a branch."""
    if not is_reading(tree):
        return None
    ((kind, content),) = tree.items()
    return EvidenceReading("value", value=content) if kind == "value" else EvidenceReading(kind, reason=content)


class FrozenValueError(TypeError):
    """Something tried to change evidence."""

    def __init__(self) -> None:
        super().__init__("evidence cannot be changed, since other checks read it too; change a copy: copy.deepcopy(…)")


def _refuse(*_: object, **__: object) -> NoReturn:
    raise FrozenValueError


class FrozenList(list[Any]):
    """A list that refuses changes."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(item, memo) for item in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class FrozenDict(dict[Any, Any]):
    """A mapping that refuses changes."""

    clear = pop = popitem = setdefault = update = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def freeze_value(value: Any) -> Any:
    """Return JSON data whose lists and mappings, at any depth, refuse changes."""
    if isinstance(value, list):
        return FrozenList(map(freeze_value, value))
    return FrozenDict({key: freeze_value(item) for key, item in value.items()}) if isinstance(value, dict) else value


class TracedValue:
    """The origin of a value.

    `path` leads to a reading (document, channel, …), `source` is the file and line in a spec, `unit` the value's unit.
    """

    path: tuple[str, ...] = ()
    source: str = ""
    unit: str = ""


class TracedInt(TracedValue, int):
    """An int with its origin."""


class TracedFloat(TracedValue, float):
    """A float with its origin."""


class TracedStr(TracedValue, str):
    """A str with its origin."""


class TracedList(TracedValue, FrozenList):
    """A list with its origin, which nobody can change."""


_KINDS: dict[type, type[TracedValue]] = {
    int: TracedInt,
    float: TracedFloat,
    str: TracedStr,
    list: TracedList,
    FrozenList: TracedList,
}


def trace_value(value: Any, path: tuple[str, ...] = (), source: str = "", unit: str = "") -> Any:
    """Return `value` with its origin. Booleans and other types cannot carry one and are returned unchanged."""
    kind = _KINDS.get(type(value))
    if kind is None:
        return value
    traced = kind(value)  # type: ignore[call-arg]  # each kind takes the value of its own type
    if path:  # the class has the empty defaults: setting an attribute costs memory
        traced.path = path
    if source:
        traced.source = source
    if unit:
        traced.unit = unit
    return traced


def format_value(value: Any) -> str:
    """Return a value as people write it: 16 instead of 16.0, 0.1 instead of 0.10000000000000001."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:.6g}"
    return str(value)
