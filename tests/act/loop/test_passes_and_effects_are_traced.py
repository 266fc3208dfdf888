"""Traces go to a receiver over HTTP, as OpenTelemetry's protocol has it: passes, and effects inside them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects.effect_journal import journal_intent
from assay.act.loop import tracing
from assay.act.loop.pass_log import records_pass
from assay.model.text.safe_text import register_secret
from tests.act import standin_world as world

INTENT = EffectIntent("e1", "reboot", "n0001", "d1", "because")
SECRET = "hunter2-hunter2"


class Receiver(ThreadingHTTPServer):
    """A receiver of traces that keeps every span."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.server.spans += scope.spans
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with Receiver() as receiver:
        Thread(target=receiver.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        tracing.open_tracer.cache_clear()
        yield receiver
        tracing.open_tracer.cache_clear()
        receiver.shutdown()


def receive(receiver: Receiver) -> dict[str, Any]:
    """Return every span by its name, after what waits was sent."""
    tracing.open_tracer().span_processor.force_flush()  # type: ignore[union-attr]
    return {span.name: span for span in receiver.spans}


def attributes(span: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


@records_pass("act")
def act(context: ActionContext, switch: world.Switch) -> None:
    intent = journal_intent(context, switch, INTENT)
    steps.verify_effect(context, switch, intent, steps.run_action(context, switch, intent))


def test_an_effect_is_traced_inside_its_pass(receiver: Receiver, tmp_path: Path) -> None:
    act(world.context(tmp_path), world.Switch(tmp_path))
    spans = receive(receiver)
    assert set(spans) == {"pass act", "effect reboot", "verify reboot"}
    assert spans["effect reboot"].parent_span_id == spans["pass act"].span_id
    assert attributes(spans["effect reboot"]) == {
        "assay.node": "n0001",
        "assay.action": "reboot",
        "assay.effect": "e1",
        "assay.decision": "d1",
    }


def test_a_batch_gives_each_effect_a_span(receiver: Receiver) -> None:
    others = [EffectIntent(f"e{at}", "cordon", f"n{at}", "d1", "because") for at in range(3)]
    with tracing.trace_batch(others):
        pass
    receive(receiver)
    assert sorted(attributes(span)["assay.node"] for span in receiver.spans) == ["n0", "n1", "n2"]


def test_an_error_is_told_without_its_traceback_and_without_secrets(receiver: Receiver) -> None:
    register_secret(SECRET)
    with pytest.raises(RuntimeError), tracing.trace("pass act", {}):
        raise RuntimeError(f"postgresql://assay:{SECRET}@db/assay does not answer")
    span = receive(receiver)["pass act"]
    assert (span.status.code, list(span.events)) == (2, [])
    assert "does not answer" in span.status.message
    assert SECRET not in span.status.message


def test_without_a_receiver_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tracing.ENDPOINT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    tracing.open_tracer.cache_clear()
    assert (tracing.open_tracer(), tracing.find_tracing_problem()) == (None, "")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    tracing.open_tracer.cache_clear()
    assert "pip install 'assay-fleet[otel]'" in tracing.find_tracing_problem()
    assert tracing.open_tracer() is None
    tracing.open_tracer.cache_clear()
