"""NVML for a machine without a C compiler: functions of NVIDIA's bindings that answer as the compiled stub does.

The probe's own code asks them, so both ways give the same branch.
"""

# ruff: noqa: N802 — the names are NVIDIA's

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pynvml
import yaml

from assay.lab.node.stub import Flat, stub_answers
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.reading import ReadingTree
from assay.node.probe.gpu.gpu_list import build_nvml_branch
from assay.node.probe.gpu.nvml import NvmlLibrary
from assay.node.probe.node_access import NodeRoot, resolve_lazy

ANSWERS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("nvml_answers.yaml").read_text())
"""Which answers of the stub each function gives, by how it gives them; and each numbered field."""
FIRST_NEWER_GENERATION = 5
WHOLE_NUMBER = 3  # NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
KINDS = ("corrected", "uncorrected")
COUNTERS = ("volatile", "aggregate")
LOCATIONS = {2: "dram_", 7: "sram_"}


def read_replayed_gpus(state: VirtualNodeState, root: Path) -> ReadingTree:
    """Return the probe's `gpu` branch of a node in this state."""
    library = NvmlLibrary(cast("ModuleType", ReplayedNvml(stub_answers(state))))
    branch: ReadingTree = resolve_lazy(build_nvml_branch(library, NodeRoot(str(root))))
    return branch


class ReplayedNvml:
    """NVIDIA's bindings with functions of its own. A GPU's handle is its slot; `rc` is its answer to every question."""

    def __init__(self, flat: Flat) -> None:
        self._flat = flat
        self._slots = str(flat["slots"]).split()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(("nvmlDevice", "nvmlSystem")):
            return getattr(pynvml, name)  # errors, structures and numbers
        ways: dict[str, Callable[..., Any]] = {
            "of_system": self._of_system,
            "one": self._one,
            "one_of": self._one_of,
            "several": self._several,
            "named": self._named,
        }
        for way, ask in ways.items():
            if name in ANSWERS[way]:
                return partial(ask, ANSWERS[way][name])
        raise AttributeError(name)

    def _refuse(self, code: int) -> Any:
        return pynvml.NVMLError(code)

    def _read(self, slot: str, key: str) -> Any:
        if code := self._flat[f"g{slot}.rc"]:
            raise self._refuse(int(code))
        if f"g{slot}.{key}" not in self._flat:
            raise self._refuse(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return self._flat[f"g{slot}.{key}"]

    def _of_system(self, key: str) -> Any:
        return self._flat[key]

    def _one(self, key: str, slot: str) -> Any:
        return self._read(slot, key)

    def _one_of(self, keys: Sequence[str], slot: str, place: int) -> Any:
        return self._read(slot, keys[place])

    def _several(self, keys: Sequence[str], slot: str) -> list[Any]:
        return [self._read(slot, key) for key in keys]

    def _named(self, keys: dict[str, str], slot: str) -> SimpleNamespace:
        answer = SimpleNamespace(**{name: self._read(slot, key) for name, key in keys.items()})
        if "total" in keys:
            answer.free = answer.total - answer.used
        return answer

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        """Return the GPU that enumerates at an index."""
        self._read(self._slots[index], "pci")
        return self._slots[index]

    def nvmlDeviceGetHandleByPciBusId(self, address: str) -> str:
        """Return the GPU at an address."""
        for slot in self._slots:
            if str(self._flat[f"g{slot}.pci"]).lower() == address.lower():
                self._read(slot, "pci")
                return slot
        raise self._refuse(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetPciInfo(self, slot: str) -> SimpleNamespace:
        """Return where a GPU is."""
        domain, bus, place = self._read(slot, "pci").split(":")
        return SimpleNamespace(domain=int(domain, 16), bus=int(bus, 16), device=int(place.partition(".")[0], 16))

    def nvmlDeviceGetIndex(self, slot: str) -> int:
        """Return the place of a GPU among those that enumerate."""
        return self._slots.index(slot)

    def nvmlDeviceGetGspFirmwareVersion(self, slot: str) -> bytes:
        """Return the version of the firmware, which the bindings leave as bytes."""
        return str(self._read(slot, "gsp")).encode()

    def nvmlDeviceValidateInforom(self, slot: str) -> None:
        """Refuse where the InfoROM is corrupted."""
        if not self._read(slot, "inforom_valid"):
            raise self._refuse(pynvml.NVML_ERROR_CORRUPTED_INFOROM)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, slot: str) -> list[SimpleNamespace]:
        """Return the processes that compute."""
        return [SimpleNamespace(pid=int(pid)) for pid in self._read(slot, "pids").split()]

    def nvmlDeviceGetTotalEccErrors(self, slot: str, kind: int, counter: int) -> int:
        """Return the errors of all memory."""
        return int(self._read(slot, f"ecc_{COUNTERS[counter]}_{KINDS[kind]}"))

    def nvmlDeviceGetMemoryErrorCounter(self, slot: str, kind: int, counter: int, location: int) -> int:
        """Return the errors of one kind of memory."""
        return int(self._read(slot, f"ecc_{COUNTERS[counter]}_{LOCATIONS[location]}{KINDS[kind]}"))

    def nvmlDeviceGetSramEccErrorStatus(self, slot: str, status: Any) -> None:
        """Fill in whether SRAM has more errors than it may."""
        status._obj.bThresholdExceeded = self._read(slot, "sram_threshold_exceeded")

    def nvmlDeviceGetGpuFabricInfoV(self, slot: str, info: Any) -> None:
        """Fill in the place in the NVLink fabric."""
        for name in ("state", "status", "clique", "health", "summary"):
            member = {"clique": "cliqueId", "health": "healthMask", "summary": "healthSummary"}.get(name, name)
            setattr(info._obj, member, self._read(slot, f"fabric_{name}"))
        info._obj.clusterUuid[:] = bytes.fromhex(self._read(slot, "fabric_cluster").replace("-", ""))

    def nvmlDeviceGetNvLinkState(self, slot: str, link: int) -> int:
        """Return whether a link is up."""
        if link >= self._read(slot, "nvlink_links"):
            raise self._refuse(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return int(link < self._read(slot, "nvlink_up"))

    def nvmlDeviceGetNvLinkErrorCounter(self, slot: str, link: int, counter: int) -> int:
        """Return the errors of a link of an older generation."""
        if self._read(slot, "nvlink_generation") >= FIRST_NEWER_GENERATION:
            raise self._refuse(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return self._count_link_errors(slot, link, ("replays", "recoveries", "crc_errors")[counter])

    def _count_link_errors(self, slot: str, link: int, counter: str) -> int:
        return int(self._flat.get(f"g{slot}.nvlink{link}_{counter}", 0))  # only links with errors have keys

    def nvmlDeviceGetFieldValues(self, slot: str, wanted: Sequence[tuple[int, int]]) -> list[SimpleNamespace]:
        """Return each field with its number, or with why it has none."""
        return [self._make_field(number, partial(self._read_field, slot, number, link)) for number, link in wanted]

    def _make_field(self, number: int, read: Callable[[], int]) -> SimpleNamespace:
        field = SimpleNamespace(fieldId=number, nvmlReturn=0, valueType=WHOLE_NUMBER, value=SimpleNamespace(ullVal=0))
        try:
            field.value.ullVal = read()
        except pynvml.NVMLError as error:
            field.nvmlReturn = error.value
        return field

    def _read_field(self, slot: str, number: int, link: int) -> int:
        if number in ANSWERS["fields"]:
            return int(self._read(slot, ANSWERS["fields"][number]))
        is_newer = self._read(slot, "nvlink_generation") >= FIRST_NEWER_GENERATION
        known = ANSWERS["fields_of_newer_links" if is_newer else "fields_of_older_links"]
        if number in known:
            return self._count_link_errors(slot, link, known[number])
        is_of_others = number in {**ANSWERS["fields_of_newer_links"], **ANSWERS["fields_of_older_links"]}
        raise self._refuse(pynvml.NVML_ERROR_NOT_SUPPORTED if is_of_others else pynvml.NVML_ERROR_INVALID_ARGUMENT)
