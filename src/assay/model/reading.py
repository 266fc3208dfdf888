"""What one look at one thing can say: a value, or a stated reason why there is none.

Standard library only: the probe carries this module to the node.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

ReadingTree = dict[str, Any]
"""A branch of an evidence document, or one leaf: an object of one key, such as `{"value": 42}`."""

LOST = "is lost"
"""What drivers and their tools say of a part that no longer answers, in the reason of a failed reading."""
PROBE_AREAS = (
    "host", "gpu", "hca", "nic", "bond", "nvme", "aer", "pci", "memory", "file_systems", "kernel", "time", "services",
    "files", "unit_settings", "adapter_settings", "kernel_log",
)  # fmt: skip
"""The first branches of the channel `probe`, in the order in which the probe prints them."""
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

    def as_json(self) -> dict[str, Any]:
        """Return the one-key object that evidence documents hold, `{"failed": "timed out after 5 s"}`."""
        return {self.kind: self.value if self.kind == "value" else self.reason}


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
