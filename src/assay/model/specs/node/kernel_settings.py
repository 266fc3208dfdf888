"""Settings of the kernel that a node spec declares by name: options of modules, huge pages."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

KernelName = Annotated[str, Field(pattern=r"^\w+$")]


def _refuse_letters_for_switches(text: str) -> str:
    """Refuse the letters that the kernel shows for a switch: the probe reads them as 1 and 0."""
    if text in ("Y", "N", "y", "n"):
        raise ValueError(f"write a switch as {'1' if text in 'Yy' else '0'}, not as {text}")
    return text


ModuleOption = Annotated[str, Field(pattern=r'^[^\s"\\#]+$'), AfterValidator(_refuse_letters_for_switches)]
ModuleOptions = dict[KernelName, dict[KernelName, ModuleOption]]
HugePages = dict[Annotated[str, Field(pattern=r"^[1-9]\d*kB$")], Annotated[int, Field(ge=0)]]


def list_option_names(modules: ModuleOptions) -> list[str]:
    """Return the declared options as `module.option`."""
    return [f"{module}.{option}" for module, options in modules.items() for option in options]
