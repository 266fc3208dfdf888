"""Processors and memory modules, as the BMC knows them."""

from __future__ import annotations

from typing import Any

from assay.lab.bmc.power import is_on
from assay.lab.bmc.systems import PATH as SYSTEM
from assay.lab.bmc.tree import Resource, View, collection, resource, slot, status

PROCESSORS, MEMORY = f"{SYSTEM}/Processors", f"{SYSTEM}/Memory"


def processors(view: View) -> Resource:
    """All CPUs and GPUs."""
    cpus = [f"CPU_{n}" for n in range(len(view.state["box"]["cpus"]))]
    gpus = [f"GPU_SXM_{gpu['index'] + 1}" for gpu in view.state.get("gpus", [])]
    return collection("Processor", "Processors", [f"{PROCESSORS}/{name}" for name in (*cpus, *gpus)])


def processor(view: View, ident: str) -> Resource:
    """One CPU, or one GPU by its SXM number (from 1)."""
    kind, _, number = ident.rpartition("_")
    if kind == "GPU_SXM":
        return _gpu(view, ident, slot(view.state["gpus"], str(int(number) - 1)))
    if kind != "CPU":
        raise LookupError(ident)
    return _cpu(ident, slot(view.state["box"]["cpus"], number))


def modules(view: View) -> Resource:
    """All memory slots."""
    count = len(view.state["box"]["dimms"])
    return collection("Memory", "Memory", [f"{MEMORY}/DIMM_{n}" for n in range(count)])


def module(view: View, ident: str) -> Resource:
    """One memory slot."""
    kind, _, number = ident.rpartition("_")
    dimm = slot(view.state["box"]["dimms"], number)
    if kind != "DIMM":
        raise LookupError(ident)
    there = dimm["present"]
    size = {"CapacityMiB": dimm["gib"] * 1024, "MemoryDeviceType": "DDR5"} if there else {"CapacityMiB": None}
    state = status(dimm["health"]) if there else status(None, "Absent")
    return resource("Memory", "1_20_0", ident, ident, MemoryType="DRAM", Status=state, **size)


def _cpu(ident: str, cpu: dict[str, Any]) -> Resource:
    return resource(
        "Processor",
        "1_20_0",
        ident,
        ident,
        ProcessorType="CPU",
        Model=cpu["model"],
        TotalCores=cpu["cores"],
        TotalThreads=cpu["threads"],
        Status=status(cpu["health"]),
    )


def _gpu(view: View, ident: str, gpu: dict[str, Any]) -> Resource:
    """A GPU that fell off the bus is still in its socket: the BMC sees it, and that it is not well."""
    state = status(None, "Absent") if not gpu["present"] else status("Critical" if gpu["lost"] else "OK")
    if not is_on(view.state) and gpu["present"]:
        state = status(None, "StandbyOffline")
    model = gpu.get("name") or gpu.get("model")
    return resource("Processor", "1_20_0", ident, ident, ProcessorType="GPU", Model=model, Status=state)
