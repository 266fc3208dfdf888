"""What the checks of a suite measure against limits, and in which unit, read from their source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assay.model.units import unit_of_name

BOUNDS = ("at_least", "at_most", "equals")
PASSED_ON = ("since_last_pass", "min", "max", "abs", "round")  # they return what they are given, in its unit


@dataclass(frozen=True, slots=True)
class Measured:
    """One `measure("name", READING, at_most=limits.LIMIT, unit=…)`, and where it stands.

    `limits` are of node specs, `fabric_limits` of fabric designs.
    `named` is the unit that ends the reading's name, `said` the explicit one; either may be "".
    """

    name: str
    limits: tuple[str, ...]
    named: str
    said: str
    file: str
    line: int
    column: int
    fabric_limits: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """The unit in which it measures; "" where neither the name nor the check says."""
        return self.said or self.named


def measures(nodes: Iterable[ast.AST], file: str) -> Iterator[Measured]:
    """Yield every call of `measure` among the nodes of a module."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "measure":
            yield _measured(node, file)


def _measured(call: ast.Call, file: str) -> Measured:
    name, reading = [*call.args[:2], None, None][:2]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    limits, of_fabrics = (
        tuple(limit for name in BOUNDS if (limit := _limit(keywords.get(name), whose)))
        for whose in ("limits", "fabric_limits")
    )
    return Measured(
        _text(name),
        limits,
        _unit(reading),
        _text(keywords.get("unit")),
        file,
        call.lineno,
        call.col_offset + 1,
        of_fabrics,
    )


def _limit(node: ast.expr | None, whose: str) -> str:
    """Return NAME of `limits.NAME`, "" of anything else."""
    match node:
        case ast.Attribute(value=ast.Name(id=found), attr=name) if found == whose:
            return name
    return ""


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _unit(node: ast.expr | None) -> str:
    """Return the unit in the name of the reading that an expression gives; arithmetic changes units, so it has none."""
    match node:
        case ast.Attribute(attr=name):
            return unit_of_name(name)
        case ast.Call(func=ast.Name(id=called), args=[argument, *_]) if called in PASSED_ON:
            return _unit(argument)
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
            return _unit(element)
    return ""
