"""Ask NVML one thing and get one leaf."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from assay.model.reading import failed, unsupported, value
from assay.probe.files import Tree


class Lost(Exception):
    """The GPU has fallen off the bus: nothing more can be asked of it."""


class Nvml:
    """The bindings, with every error told apart: a call that this driver lacks is unsupported, not failed."""

    def __init__(self, bindings: ModuleType) -> None:
        self.bindings: Any = bindings
        self.Error: Any = bindings.NVMLError
        self.lacking = {
            self.bindings.NVML_ERROR_NOT_SUPPORTED,
            self.bindings.NVML_ERROR_FUNCTION_NOT_FOUND,
            self.bindings.NVML_ERROR_DEPRECATED,
        }

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the bindings. Raises `self.Error`, also for a function that these bindings lack."""
        function = getattr(self.bindings, name, None)
        if function is None:
            raise self.Error(self.bindings.NVML_ERROR_FUNCTION_NOT_FOUND)
        return function(*arguments)

    def ask(self, name: str, *arguments: Any) -> Tree:
        """Return the answer as a leaf. Raises Lost when the GPU is."""
        try:
            return value(self.call(name, *arguments))
        except self.Error as error:
            if error.value == self.bindings.NVML_ERROR_GPU_IS_LOST:
                raise Lost("GPU is lost") from error
            return self.why(error)
        except UnicodeDecodeError:
            return failed(f"{name}: the answer is not text")

    def why(self, error: Any) -> Tree:
        """Return the leaf for an NVML error."""
        if error.value in self.lacking:
            return unsupported(str(error))
        lost = error.value == self.bindings.NVML_ERROR_GPU_IS_LOST
        return failed("GPU is lost" if lost else str(error))
