"""Plants faults in the running virtual fleet. `FAULTS` lists all of them; `assay lab inject list` prints the list.

Most faults change values of a node's state, as rows of `changed_values.yaml` say. The others are functions of the
state, the lab's time and their own arguments, which change the state in place. Those of cables and replaced parts
change more than one node's state: they are functions of the world and the node's name.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError

from assay.lab.faults.node_faults import NODE_FAULTS, find_adapter, require_among
from assay.lab.faults.replaced_parts import WORLD_FAULTS
from assay.lab.virtual_node_state import VirtualNodeState, append_kernel_line, with_sel_event
from assay.lab.world import LabWorld
from assay.model.errors import AssayError
from assay.model.text.lists import fold_names, format_list, suggest_names

ADAPTERS = ("hcas", "nics")


class LabFault(NamedTuple):
    """A fault that the lab can plant: what it is, its arguments with their usual values, and what plants it.

    An argument whose usual value is `Parameter.empty` must be given. `kinds`: the types of arguments, as far as known.
    """

    meaning: str
    arguments: Mapping[str, Any]
    plant: Callable[..., None]
    kinds: Mapping[str, Any]

    @property
    def usage(self) -> str:
        """Its arguments in one line, with their usual values or all that they may be."""
        listed = []
        for name, usual in self.arguments.items():
            kind = self.kinds.get(name)
            choices = get_args(kind) if get_origin(kind) is Literal else () if usual is Parameter.empty else (usual,)
            values = "|".join(map(str, choices)).strip()
            listed.append(f"{name}={values}" if values else name)
        return ", ".join(listed) or "nothing"


def change_values(row: Mapping[str, Any], state: VirtualNodeState, now: datetime, **arguments: Any) -> None:
    """Change a node's state as a row of `changed_values.yaml` says."""
    filled = {**row.get("with", {}), **arguments}
    for name, path in row.get("among", {}).items():
        place, last = _find_place(state, path, filled)
        require_among(filled[name], place[last])
    for path, value in row.get("set", {}).items():
        place, last = _find_place(state, path, filled)
        place[last] = _fill(value, filled)
    for path, number in row.get("add", {}).items():
        place, last = _find_place(state, path, filled)
        place[last] += _fill(number, filled)
    for path, bits in row.get("bits", {}).items():
        place, last = _find_place(state, path, filled)
        place[last] |= bits
    for path, value in row.get("append", {}).items():
        place, last = _find_place(state, path, filled)
        place[last] = [*place.get(last, ()), _fill(value, filled)]
    if "log" in row:
        append_kernel_line(state, now, _fill(row["log"], filled))
    if "event" in row:
        state.update(with_sel_event(state, now, *_fill(row["event"], filled)))


def _find_place(state: VirtualNodeState, path: str, arguments: Mapping[str, Any]) -> tuple[Any, str]:
    """Return what holds the value at a path, and the value's name in it."""
    *steps, last = path.split("/")
    place: Any = state
    for step in steps:
        key = _fill(step, arguments)
        if isinstance(place, dict):
            place = place.setdefault(str(key), {})
        elif steps[0] in ADAPTERS:
            place = find_adapter(state, key)
        else:
            place = place[key]
    return place, str(_fill(last, arguments))


def _fill(value: Any, arguments: Mapping[str, Any]) -> Any:
    """Return a value of a row with the arguments in it; one that is only `{name}` is the argument, as it was given."""
    if isinstance(value, str):
        names = [name for _, name, _, _ in string.Formatter().parse(value) if name]
        return arguments[names[0]] if value == f"{{{''.join(names)}}}" else value.format(**arguments)
    if isinstance(value, list):
        return [_fill(each, arguments) for each in value]
    return {key: _fill(each, arguments) for key, each in value.items()} if isinstance(value, dict) else value


def _read_faults() -> dict[str, LabFault]:
    """Return every fault by its name."""
    rows = yaml.safe_load(Path(__file__).with_name("changed_values.yaml").read_text())
    faults = {}
    for name, row in rows.items():
        usual = {key: Parameter.empty if value is None else value for key, value in row.get("with", {}).items()}
        kinds = {key: type(value) for key, value in usual.items() if isinstance(value, int | float)}
        faults[name] = LabFault(row["is"], usual, partial(change_values, row), kinds)
    for name, plant in {**NODE_FAULTS, **WORLD_FAULTS}.items():
        parameters = [*signature(plant).parameters.values()][2:]
        usual = {parameter.name: parameter.default for parameter in parameters}
        faults[name] = LabFault(plant.__doc__ or "", usual, plant, get_type_hints(plant))
    return dict(sorted(faults.items()))


FAULTS: Mapping[str, LabFault] = _read_faults()


def inject_fault(world: LabWorld, fault: str, node: str, arguments: Mapping[str, Any]) -> None:
    """Plant `fault` on `node`. Raises AssayError for an unknown fault, node or argument."""
    if fault not in FAULTS:
        raise AssayError(f"no fault {fault!r}", fix=suggest_names(fault, FAULTS.keys(), "`assay lab inject list`"))
    if node not in world.nodes():
        text = f"no node {node!r} in the lab" if node else "no node is given: --node NODE"
        raise AssayError(text, fix=f"one of {format_list(fold_names(world.nodes()))}")
    known, plant = FAULTS[fault].arguments, FAULTS[fault].plant
    if unknown := arguments.keys() - known.keys():
        raise AssayError(f"{fault} takes no {', '.join(sorted(unknown))}", fix=f"it takes: {FAULTS[fault].usage}")
    if missing := [name for name, usual in known.items() if usual is Parameter.empty and name not in arguments]:
        raise AssayError(f"{fault} needs {', '.join(missing)}", fix=" ".join(f"--with {name}=…" for name in missing))
    arguments = {name: _convert(fault, name, given) for name, given in arguments.items()}
    try:
        if fault in WORLD_FAULTS:
            plant(world, node, **arguments)
            return
        with world.change(node) as state:
            plant(state, world.clock().now(), **arguments)
    except (IndexError, StopIteration) as error:
        raise AssayError(f"{fault}: {node} has no such part", fix="its spec says how many it has") from error
    except (TypeError, AttributeError) as error:
        values = ", ".join(f"{name}={value}" for name, value in arguments.items())
        raise AssayError(f"{fault} makes no sense with {values}", fix="parts are numbers, from 0") from error


def _convert(fault: str, name: str, given: Any) -> Any:
    """Return an argument as its fault takes it. Raises AssayError for one that it cannot be."""
    kind = FAULTS[fault].kinds.get(name)
    try:
        return given if kind in (None, str) else TypeAdapter(kind).validate_python(given)
    except ValidationError as error:
        wanted = error.errors()[0]["msg"].removeprefix("Input should be ").partition(", unable")[0]
        text = f"{fault}: {name} must be {wanted}, not {given!r}"
        raise AssayError(text, fix=f"it takes: {FAULTS[fault].usage}") from None
