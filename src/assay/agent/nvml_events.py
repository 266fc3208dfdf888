"""Follows NVML's events: XIDs and memory errors as the driver tells them, beside what it writes into the kernel log.

A GPU whose events are followed is open, and cannot be reset meanwhile: what resets GPUs stops the agent first.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
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
    """Tells `heard` the text of each event, in the words of the kernel log. `trouble` says why there are none."""

    def __init__(self, heard: Callable[[str], None], over: threading.Event) -> None:
        self._heard, self._over = heard, over
        self.trouble = ""

    def run(self) -> None:
        """Follow until `over` is set; where NVML is not there or breaks, try again now and then."""
        while not self._over.is_set():
            try:
                import pynvml

                self._follow(pynvml)
            except ImportError:
                self.trouble = "NVML's bindings (nvidia-ml-py) are not installed"
                return
            except Exception as error:  # NVML's own errors, in many classes: none may end the agent
                self.trouble = f"NVML: {error}"
            self._over.wait(RETRY_S)

    def _follow(self, nvml: ModuleType) -> None:
        nvml.nvmlInit()
        try:
            events = nvml.nvmlEventSetCreate()
            places = dict(_register_gpus(nvml, events))
            self.trouble = "" if places else "NVML: no GPU offers events"
            while places and not self._over.is_set():
                if text := _next_event(nvml, events, places):
                    self._heard(text)
        finally:
            nvml.nvmlShutdown()


def _register_gpus(nvml: ModuleType, events: Any) -> Any:
    """Yield (handle, PCI place) of each GPU whose events are followed; one that is lost does not hide the others."""
    wanted = sum({getattr(nvml, name, 0) for name in EVENT_TEXTS})
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
            nvml.nvmlDeviceRegisterEvents(gpu, wanted & nvml.nvmlDeviceGetSupportedEventTypes(gpu), events)
            yield _address(gpu), _place(nvml.nvmlDeviceGetPciInfo(gpu).busId)
        except nvml.NVMLError:
            continue


def _next_event(nvml: ModuleType, events: Any, places: dict[int | None, str]) -> str:
    try:
        event = nvml.nvmlEventSetWait_v2(events, WAIT_MS)
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_TIMEOUT:
            return ""
        raise
    place = places.get(_address(event.device), "unknown")
    if event.eventType == nvml.nvmlEventTypeXidCriticalError:
        return f"NVRM: Xid (PCI:{place}): {event.eventData}, told by NVML"
    what = next((text for name, text in EVENT_TEXTS.items() if getattr(nvml, name, 0) == event.eventType), "an event")
    return f"NVML: {what} (PCI:{place})"


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _place(bus_id: bytes | str) -> str:
    """Return `0000:1b:00` as the kernel log has it, of NVML's `00000000:1B:00.0`."""
    text = bus_id.decode() if isinstance(bus_id, bytes) else bus_id
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest.partition('.')[0]}"
