"""Lets the wheel carry the example, of which `assay init` makes a fleet repository. A checkout has it at its root."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Example(BuildHookInterface):  # type: ignore[type-arg]  # hatchling leaves its parameter open
    """Adds what `[tool.hatch.build.targets.wheel.hooks.custom]` lists as `carries`, to wheels that are installed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say which files go where. An editable install must not get a second copy of them."""
        if version == "standard":
            build_data["force_include"] |= {
                name: f"assay/declare/starter/example/{name}" for name in self.config["carries"]
            }
