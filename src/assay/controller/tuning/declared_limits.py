"""Which limit of a spec a measurement in history was compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from assay.fleet.spec_values_read_by_checks import CheckInputs
from assay.model.fleet import Fleet
from assay.model.specs.node.node_spec import MetricLimit
from assay.trends.limits.known_limits import KnownLimit


@dataclass(frozen=True)
class DeclaredLimits:
    """The limits of a fleet's specs, and what its checks read of them."""

    fleet: Fleet
    reads: Mapping[str, CheckInputs]

    def find(self, spec: str, name: str) -> MetricLimit | None:
        """Return a limit of a spec, None where there is none."""
        declared = self.fleet.node_specs.get(spec)
        return declared.limits.get(name) if declared else None

    def list_names(self, limit: KnownLimit) -> Iterator[tuple[str, str]]:
        """Yield spec and name of what the limit is declared as: by the check's code, else by its line.

        A line may have moved since, so the value must be the one that was measured against.
        """
        inputs = self.reads.get(limit.check)
        sides = inputs.limits_by_measurement().get(limit.name, []) if inputs else []
        for spec in limit.specs:
            yield from ((spec, name) for side, name in sides if side == limit.side and self.find(spec, name))
            if not sides and (name := self._names_by_line.get(limit.source)) and self.is_as_measured(spec, name, limit):
                yield spec, name

    def is_as_measured(self, spec: str, name: str, limit: KnownLimit) -> bool:
        """Whether a declared limit still has the value and unit that was measured against."""
        declared = self.find(spec, name)
        return declared is not None and (declared.value, declared.unit) == (limit.value, limit.unit)

    @cached_property
    def _names_by_line(self) -> Mapping[str, str]:
        paths = ((path.split("."), line) for (_, path), line in self.fleet.lines.items() if path.startswith("limits."))
        return {line: steps[1] for steps, line in paths}
