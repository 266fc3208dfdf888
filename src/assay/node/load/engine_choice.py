"""Makes the engine that a command asks for."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

from assay.node.load.cpu_facts import list_made_devices
from assay.node.load.engine import Engine, LoadError
from assay.node.load.jax_mesh import JaxMesh
from assay.node.load.training_nodes import ALONE, TrainingNodes


@dataclass(frozen=True)
class EngineRequest:
    """What the command says: the engine's name, "" for JAX where it is installed; the rest is for CPUs and order."""

    name: str
    devices: int
    order: Sequence[int]
    uuids: Sequence[str]
    kind: str
    unit_s: float = 60
    group: TrainingNodes = ALONE


def make_engine(request: EngineRequest) -> Engine:
    """Return the engine. Raises LoadError if it cannot be had here."""
    if request.name == "jax" or (not request.name and importlib.util.find_spec("jax")):
        from assay.node.load.jax_engine import JaxEngine

        mesh = JaxMesh(request.devices, request.order, request.uuids, request.kind, request.group)
        return JaxEngine(mesh, request.unit_s)
    if request.group.nodes > 1:
        raise LoadError("numpy trains on one node; say --engine jax")
    from assay.node.load.numpy_engine import NumpyEngine

    return NumpyEngine(list_made_devices(request.devices, request.order, request.uuids, request.kind))
