"""Traces of passes and effects over OpenTelemetry, where OTEL_EXPORTER_OTLP_ENDPOINT names a receiver.

Needs the extra `assay-fleet[otel]`. The variables of OpenTelemetry's own SDK set the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from assay.act.actions.action import EffectIntent
from assay.model.errors import describe_error
from assay.model.text.safe_text import redact

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

P = ParamSpec("P")
R = TypeVar("R")
ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
EXPORT_TIMEOUT_S = 5


def find_tracing_problem() -> str:
    """Return why no traces can be sent although a receiver is named, "" if all is well."""
    if not _has_endpoint() or find_spec("opentelemetry.sdk") is not None:
        return ""
    return "sends no traces: OpenTelemetry is not installed\n  → pip install 'assay-fleet[otel]'"


@contextmanager
def trace(name: str, attributes: Mapping[str, str]) -> Iterator[None]:
    """Make the block a span, inside the one that this thread is in. Does nothing without a receiver."""
    tracer = open_tracer()
    if tracer is None:
        yield
        return
    from opentelemetry.trace import StatusCode

    with tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except Exception as error:
            span.set_status(StatusCode.ERROR, redact(describe_error(error)))
            raise


def trace_effect(step: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a step of one effect, so that each call is a span `STEP ACTION`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            intent = next(argument for argument in args if isinstance(argument, EffectIntent))
            with trace(f"{step} {intent.action}", describe_effect(intent)):
                return function(*args, **kwargs)

        return traced

    return decorate


@contextmanager
def trace_batch(intents: Iterable[EffectIntent]) -> Iterator[None]:
    """Make one span for each effect that the block brings about together with the others."""
    begun_ns = time.time_ns()
    yield
    if tracer := open_tracer():
        for intent in intents:
            tracer.start_span(f"effect {intent.action}", attributes=describe_effect(intent), start_time=begun_ns).end()


def describe_effect(intent: EffectIntent) -> dict[str, str]:
    """Return the attributes of an effect's spans; its reason stays in the ledger."""
    ids = {"assay.effect": intent.effect, "assay.decision": intent.decision}
    return {"assay.node": intent.node, "assay.action": intent.action, **ids}


@cache
def open_tracer() -> Tracer | None:
    """Return the tracer of this process, None without a receiver or without the extra."""
    if not _has_endpoint() or find_tracing_problem():
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = os.environ.get("OTEL_SERVICE_NAME", "assay")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    timeout_s = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else EXPORT_TIMEOUT_S
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=timeout_s)))
    return provider.get_tracer("assay")


def _has_endpoint() -> bool:
    return any(os.environ.get(name) for name in ENDPOINT_VARIABLES)
