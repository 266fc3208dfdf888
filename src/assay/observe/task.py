"""A task of a BMC, as far as one can believe it: firmware is proven by the inventory, never by a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OVER = frozenset({"Completed", "Exception", "Killed", "Cancelled", "Gone"})


@dataclass(frozen=True, slots=True)
class Task:
    """`state` is Redfish's TaskState, or Gone; `percent` is None where the BMC does not say."""

    path: str
    state: str = "New"
    status: str = ""
    percent: int | None = None
    message: str = ""

    @property
    def over(self) -> bool:
        """Whether the task has ended, however."""
        return self.state in OVER

    @property
    def well(self) -> bool:
        """Whether the BMC claims success: Completed, and not Critical."""
        return self.state == "Completed" and self.status in ("", "OK")


def as_task(resource: Mapping[str, Any]) -> Task:
    """Read a Redfish Task."""
    last = messages_of(resource)[-1:]
    return Task(
        path=str(resource["@odata.id"]),
        state=str(resource.get("TaskState") or "New"),
        status=str(resource.get("TaskStatus") or ""),
        percent=resource.get("PercentComplete"),
        message="".join(str(message.get("Message") or "") for message in last),
    )


def messages_of(resource: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages of a Task, oldest first; nothing in the place of what is none."""
    told = resource.get("Messages")
    return [message for message in told if isinstance(message, Mapping)] if isinstance(told, list) else []
