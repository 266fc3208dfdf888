"""Follows NVML's events: XIDs and memory errors, which the driver reports beside the kernel log.

Following keeps a GPU's device open, so the GPU cannot be reset meanwhile: whoever resets GPUs stops the agent first.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

WAIT_MS = 500
RETRY_S = 30.0
EVENT_TEXTS = {
    "nvmlEventTypeXidCriticalError": "",
    "nvmlEventTypeDoubleBitEccError": "double bit ECC error",
    "nvmlEventTypeSingleBitEccErrorStorm": "storm of single bit ECC errors",
    "nvmlEventTypeDramRetirementEvent": "DRAM row retired",
    "nvmlEventTypeDramRetirementFailure": "DRAM row could not be retired",
    "nvmlEventTypeNonFatalPoisonError": "poison consumed, contained",
    "nvmlEventTypeFatalPoisonError": "poison consumed, not contained",
    "nvmlEventTypeGpuUnavailableError": "GPU unavailable",
    "nvmlEventTypeGpuRecoveryAction": "GPU recovery action changed",
}


class NvmlEventFollower:
    """Passes each event to `on_event`, as text in the form of kernel log lines. `error` says why there are none."""

    def __init__(self, on_event: Callable[[str], None], over: threading.Event) -> None:
        self._on_event, self._over = on_event, over
        self.error = "NVML: not followed yet"

    def run(self) -> None:
        """Follow until `over` is set. Where NVML fails, retry every `RETRY_S`; without its bindings, return."""
        while not self._over.is_set():
            try:
                import pynvml

                self._follow(pynvml)
            except ImportError:
                self.error = "NVML's bindings (nvidia-ml-py) are not installed"
                return
            except Exception as error:  # NVML's errors have many classes; none may end the agent
                self.error = f"NVML: {error}"
            self._over.wait(RETRY_S)

    def _follow(self, nvml: ModuleType) -> None:
        nvml.nvmlInit()
        try:
            events = nvml.nvmlEventSetCreate()
            addresses = dict(_register_gpus(nvml, events))
            self.error = "" if addresses else "NVML: no GPU offers events"
            while addresses and not self._over.is_set():
                if text := _next_event(nvml, events, addresses):
                    self._on_event(text)
        finally:
            nvml.nvmlShutdown()


def _register_gpus(nvml: ModuleType, events: Any) -> Iterator[tuple[int | None, str]]:
    """Register the events of every GPU; yield (handle, PCI address) of each. A lost GPU is left out."""
    wanted = sum({getattr(nvml, name, 0) for name in EVENT_TEXTS})
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
            nvml.nvmlDeviceRegisterEvents(gpu, wanted & nvml.nvmlDeviceGetSupportedEventTypes(gpu), events)
            yield _handle_number(gpu), _kernel_log_address(nvml.nvmlDeviceGetPciInfo(gpu).busId)
        except nvml.NVMLError:
            continue


def _next_event(nvml: ModuleType, events: Any, addresses: dict[int | None, str]) -> str:
    """Return the text of the next event, "" where none comes within `WAIT_MS`."""
    try:
        event = nvml.nvmlEventSetWait_v2(events, WAIT_MS)
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_TIMEOUT:
            return ""
        raise
    address = addresses.get(_handle_number(event.device), "unknown")
    if event.eventType == nvml.nvmlEventTypeXidCriticalError:
        return f"NVRM: Xid (PCI:{address}): {event.eventData}, reported by NVML"
    what = next((text for name, text in EVENT_TEXTS.items() if getattr(nvml, name, 0) == event.eventType), "an event")
    return f"NVML: {what} (PCI:{address})"


def _handle_number(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _kernel_log_address(bus_id: bytes | str) -> str:
    """Turn NVML's `00000000:1B:00.0` into `0000:1b:00`, the form in the kernel log."""
    text = bus_id.decode() if isinstance(bus_id, bytes) else bus_id
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest.partition('.')[0]}"
