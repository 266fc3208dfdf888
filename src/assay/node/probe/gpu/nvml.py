"""Calls NVML: one call gives one leaf, now or, as a question, later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from assay.model.reading import ReadingTree, failed, unsupported, value

NvmlQuestion = Callable[[], Any]
Field = tuple[int, int]
"""(field id of NVML, scope); the scope is a link's number, or 0."""

GPU_LOST: ReadingTree = failed("GPU is lost")
VALUE_FIELDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by nvmlValueType_t


class NvmlLibrary:
    """NVML's bindings. Errors become leaves; a call that this driver lacks is unsupported, not failed."""

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
        """Call a function of the bindings. Raises `self.Error`, also where these bindings lack the function."""
        function = getattr(self.bindings, name, None)
        if function is None:
            raise self.Error(self.bindings.NVML_ERROR_FUNCTION_NOT_FOUND)
        return function(*arguments)

    def ask(self, name: str, *arguments: Any, into: Callable[[Any], Any] = value) -> Any:
        """Call a function and return `into` of its answer, by default a value leaf; for an error, its leaf."""
        try:
            return into(self.call(name, *arguments))
        except self.Error as error:
            return self.leaf_for_error(error)
        except UnicodeDecodeError:
            return failed(f"{name}: the answer is not text")

    def leaf_for_error(self, error: Any) -> ReadingTree:
        """Return the leaf for an NVML error."""
        if error.value in self.lacking:
            return unsupported(str(error))
        return GPU_LOST if error.value == self.bindings.NVML_ERROR_GPU_IS_LOST else failed(str(error))


class NvmlGpu(NamedTuple):
    """One GPU and the questions that NVML answers about it."""

    nvml: NvmlLibrary
    handle: Any

    def ask(self, name: str, *arguments: Any, into: Callable[[Any], Any] = value) -> Any:
        """Call a function now, with the GPU's handle as its first argument."""
        return self.nvml.ask(name, self.handle, *arguments, into=into)

    def ask_later(self, name: str, *arguments: Any, then: Callable[[Any], Any] | None = None) -> NvmlQuestion:
        """Return the question for a leaf; its value is `then` of the answer."""
        into = (lambda answer: value(then(answer))) if then else value
        return lambda: self.ask(name, *arguments, into=into)

    def ask_branch_later(self, branch: Callable[[Any], Any], name: str, *arguments: Any) -> NvmlQuestion:
        """Return the question for `branch` of one answer."""
        return lambda: self.ask(name, *arguments, into=branch)

    def ask_first_supported(self, *questions: NvmlQuestion) -> NvmlQuestion:
        """Return the question that asks each in turn until one is supported. Name newer calls first."""

        def ask() -> Any:
            answers = []
            for question in questions:
                answers.append(question())
                if "unsupported" not in answers[-1]:
                    return answers[-1]
            return answers[0]

        return ask

    def read_fields(self, wanted: Sequence[Field]) -> list[ReadingTree]:
        """Return a leaf for each field, read with one call."""
        answer = self.ask("nvmlDeviceGetFieldValues", list(wanted), into=lambda fields: [*map(self._field, fields)])
        return answer if isinstance(answer, list) else [answer] * len(wanted)

    def _field(self, field: Any) -> ReadingTree:
        if field.nvmlReturn == self.nvml.bindings.NVML_ERROR_INVALID_ARGUMENT:
            return unsupported(f"field {field.fieldId} is not known to this driver")
        if field.nvmlReturn:
            return self.nvml.leaf_for_error(self.nvml.Error(field.nvmlReturn))
        if field.valueType >= len(VALUE_FIELDS):
            return failed(f"field {field.fieldId} is of a type that is not known here")
        return value(getattr(field.value, VALUE_FIELDS[field.valueType]))
