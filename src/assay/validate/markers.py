"""The markers of checks: their names for pytest, and what a check's marks say."""

from __future__ import annotations

from typing import Any

import pytest

from assay.model.facts import frozen

CHECK_MARKERS = (
    "phase(*names): the lifecycle phases in which this check runs",
    "fault(class): the fault class that a failure of this check means",
    "active: this check needs a workload that ran on the node",
    "passive: this check needs only readings, no workload",
)


@frozen
class CheckMarks:
    """Phases that the check runs in, the fault class that its failure means, and whether it needs a workload."""

    phases: tuple[str, ...] = ()
    fault: str = ""
    active: bool = False

    @classmethod
    def of_item(cls, item: pytest.Item) -> CheckMarks:
        """Read the marks of an item; the function's own take precedence over the module's."""
        return cls._read({mark.name: mark for mark in reversed(list(item.iter_markers()))})

    @classmethod
    def of_function(cls, function: Any, module: pytest.Collector) -> CheckMarks:
        """Read the marks of a test function before it has items."""
        own: list[pytest.Mark] = getattr(function, "pytestmark", [])
        return cls._read({mark.name: mark for mark in [*reversed(list(module.iter_markers())), *own]})

    @classmethod
    def _read(cls, marks: dict[str, pytest.Mark]) -> CheckMarks:
        phase, fault = marks.get("phase"), marks.get("fault")
        return cls(phase.args if phase else (), fault.args[0] if fault and fault.args else "", "active" in marks)
