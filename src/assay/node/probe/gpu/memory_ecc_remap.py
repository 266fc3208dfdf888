"""Reads a GPU's memory: its size, its ECC errors by place, and the repairs (retired pages, remapped rows)."""

from __future__ import annotations

from ctypes import byref
from typing import Any

from assay.model.reading import ReadingTree, value
from assay.node.probe.gpu.nvml import NvmlGpu, NvmlQuestion
from assay.node.probe.node_access import LazyTree

CORRECTED, UNCORRECTED = 0, 1  # nvmlMemoryErrorType_t
VOLATILE, AGGREGATE = 0, 1  # nvmlEccCounterType_t
DRAM, SRAM = 2, 7  # nvmlMemoryLocation_t
SINGLE_BIT, DOUBLE_BIT = 0, 1  # nvmlPageRetirementCause_t


def read_ecc(gpu: NvmlGpu) -> LazyTree:
    """Return the branch `ecc`: the mode, now and after the next reset, and the errors since boot and in total."""
    return {
        "enabled": gpu.ask_later("nvmlDeviceGetCurrentEccMode", then=bool),
        "pending": gpu.ask_later("nvmlDeviceGetPendingEccMode", then=bool),
        "volatile": _errors(gpu, VOLATILE),
        "aggregate": _errors(gpu, AGGREGATE),
        "sram_threshold_exceeded": _sram_threshold(gpu),
    }


def _errors(gpu: NvmlGpu, counter: int) -> LazyTree:
    def at(location: int, kind: int) -> NvmlQuestion:
        return gpu.ask_later("nvmlDeviceGetMemoryErrorCounter", kind, counter, location)

    return {
        "corrected": gpu.ask_later("nvmlDeviceGetTotalEccErrors", CORRECTED, counter),
        "uncorrected": gpu.ask_later("nvmlDeviceGetTotalEccErrors", UNCORRECTED, counter),
        "sram_corrected": at(SRAM, CORRECTED),
        "sram_uncorrected": at(SRAM, UNCORRECTED),
        "dram_corrected": at(DRAM, CORRECTED),
        "dram_uncorrected": at(DRAM, UNCORRECTED),
    }


def _sram_threshold(gpu: NvmlGpu) -> NvmlQuestion:
    def ask() -> ReadingTree:
        status = gpu.nvml.bindings.c_nvmlEccSramErrorStatus_v1_t()
        leaf: ReadingTree = gpu.ask(
            "nvmlDeviceGetSramEccErrorStatus", byref(status), into=lambda _: value(bool(status.bThresholdExceeded))
        )
        return leaf

    return ask


def read_retired_pages(gpu: NvmlGpu) -> LazyTree:
    """Return the branch `retired_pages`, for GPUs before Ampere; later ones remap rows instead."""
    return {
        "single_bit": gpu.ask_later("nvmlDeviceGetRetiredPages", SINGLE_BIT, then=len),
        "double_bit": gpu.ask_later("nvmlDeviceGetRetiredPages", DOUBLE_BIT, then=len),
        "pending": gpu.ask_later("nvmlDeviceGetRetiredPagesPendingStatus", then=bool),
    }


def read_remap(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the branch `remap`: remapped rows, whether one is pending or failed, and spare rows."""

    def branch(rows: tuple[int, int, int, int]) -> LazyTree:
        correctable, uncorrectable, pending, failure = rows
        return {
            "correctable": value(correctable),
            "uncorrectable": value(uncorrectable),
            "pending": value(bool(pending)),
            "failed": value(bool(failure)),
            "histogram": gpu.ask_branch_later(_histogram, "nvmlDeviceGetRowRemapperHistogram"),
        }

    return gpu.ask_branch_later(branch, "nvmlDeviceGetRemappedRows")


def _histogram(banks: Any) -> ReadingTree:
    """Return how many banks have all, many, some, few or no spare rows left."""
    return {left: value(getattr(banks, left)) for left in ("max", "high", "partial", "low", "none")}


def read_repair(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the branch `repair`: whether the next reset repairs a memory channel or a TPC."""

    def branch(pending: list[int]) -> ReadingTree:
        return {"channel_pending": value(bool(pending[0])), "tpc_pending": value(bool(pending[1]))}

    return gpu.ask_branch_later(branch, "nvmlDeviceGetRepairStatus")


def read_frame_buffer(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the branch `memory`: bytes of the frame buffer. The call allocates no memory."""

    def branch(memory: Any) -> ReadingTree:
        return {f"{part}_bytes": value(getattr(memory, part)) for part in ("total", "used", "free")}

    return gpu.ask_branch_later(branch, "nvmlDeviceGetMemoryInfo")
