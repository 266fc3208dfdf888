"""Ask NVML one thing and get one leaf; put it off, and get the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from assay.model.reading import failed, unsupported, value
from assay.probe.node_access import Tree

NvmlQuestion = Callable[[], Any]
Field = tuple[int, int]
"""A field id of NVML and its scope: a link, or 0."""

GPU_LOST: Tree = failed("GPU is lost")
VALUE_FIELDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by nvmlValueType_t


class NvmlLibrary:
    """The bindings, with every error told apart: a call that this driver lacks is unsupported, not failed."""

    def __init__(self, bindings: ModuleType) -> None:
        self.bindings: Any = bindings
        self.Error: Any = bindings.NVMLError
        self.lacking = {
            self.bindings.NVML_ERROR_NOT_SUPPORTED,
            self.bindings.NVML_ERROR_FUNCTION_NOT_FOUND,
            self.bindings.NVML_ERROR_DEPRECATED,
            self.bindings.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        }

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the bindings. Raises `self.Error`, also for a function that these bindings lack."""
        function = getattr(self.bindings, name, None)
        if function is None:
            raise self.Error(self.bindings.NVML_ERROR_FUNCTION_NOT_FOUND)
        return function(*arguments)

    def ask(self, name: str, *arguments: Any, into: Callable[[Any], Any] = value) -> Any:
        """Return what `into` makes of the answer, a leaf if not told otherwise; the leaf for why there is none."""
        try:
            return into(self.call(name, *arguments))
        except self.Error as error:
            return self.leaf_for_error(error)
        except UnicodeDecodeError:
            return failed(f"{name}: the answer is not text")

    def leaf_for_error(self, error: Any) -> Tree:
        """Return the leaf for an NVML error."""
        if error.value in self.lacking:
            return unsupported(str(error))
        return GPU_LOST if error.value == self.bindings.NVML_ERROR_GPU_IS_LOST else failed(str(error))


@dataclass(frozen=True)
class NvmlGpu:
    """One GPU that can be asked."""

    nvml: NvmlLibrary
    handle: Any

    def ask(self, name: str, *arguments: Any, into: Callable[[Any], Any] = value) -> Any:
        """Ask now, with the device's handle as the first argument."""
        return self.nvml.ask(name, self.handle, *arguments, into=into)

    def ask_later(self, name: str, *arguments: Any, then: Callable[[Any], Any] | None = None) -> NvmlQuestion:
        """Return the question for one leaf, `then` of its answer."""
        into = (lambda answer: value(then(answer))) if then else value
        return lambda: self.ask(name, *arguments, into=into)

    def ask_branch_later(self, branch: Callable[[Any], Any], name: str, *arguments: Any) -> NvmlQuestion:
        """Return the question for a branch, made of one answer."""
        return lambda: self.ask(name, *arguments, into=branch)

    def ask_first_supported(self, *questions: NvmlQuestion) -> NvmlQuestion:
        """Return the question that asks each until one is supported: newer calls first, older names after them."""

        def ask() -> Any:
            answers = []
            for question in questions:
                answers.append(question())
                if "unsupported" not in answers[-1]:
                    return answers[-1]
            return answers[0]

        return ask

    def read_fields(self, wanted: Sequence[Field]) -> list[Tree]:
        """Return a leaf for each field value, all asked for at once."""
        answer = self.ask("nvmlDeviceGetFieldValues", list(wanted), into=lambda fields: [*map(self._field, fields)])
        return answer if isinstance(answer, list) else [answer] * len(wanted)

    def _field(self, field: Any) -> Tree:
        if field.nvmlReturn == self.nvml.bindings.NVML_ERROR_INVALID_ARGUMENT:
            return unsupported(f"field {field.fieldId} is not known to this driver")
        if field.nvmlReturn:
            return self.nvml.leaf_for_error(self.nvml.Error(field.nvmlReturn))
        if field.valueType >= len(VALUE_FIELDS):
            return failed(f"field {field.fieldId} is of a type that is not known here")
        return value(getattr(field.value, VALUE_FIELDS[field.valueType]))
