"""Which way leads to a node: what its inventory says, and nothing else."""

from __future__ import annotations

import ast
import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.plugins import TRANSPORTS
from assay.model.specs.node_settings import NodeSettings
from assay.node.probe.pack import build_pack
from assay.observe.transports import command
from assay.observe.transports.command import CommandTransport, fetch_or_build
from assay.observe.transports.transport import TransportRegistry, run_remote_probe


def node(**variables: Any) -> Node:
    return Node("n1", "p", "s", "r01", 1, "x", "spec", "managed", settings=NodeSettings().model_copy(update=variables))


def test_a_reach_of_its_own_goes_before_any_transport() -> None:
    script = [sys.executable, "-c", 'print(\'{"probe": {"a": {"value": 1}}}\')']
    assert run_remote_probe(node(reach=script, transport="push"), [], 20) == {"probe": {"a": {"value": 1}}}


def test_nothing_said_is_ssh() -> None:
    way = TransportRegistry().transport_for(node())
    assert isinstance(way, CommandTransport)
    assert way.wrap(node(), ["true"])[0] == "ssh"


def test_one_that_there_is_not_is_refused_and_those_that_there_are_named() -> None:
    with pytest.raises(AssayError, match="n1: there is no transport 'pigeon'") as said:
        TransportRegistry().transport_for(node(transport="pigeon"))
    assert all(name in said.value.fix for name in ("ssh", "local", "slurm", "kubernetes", "push", "prometheus"))
    assert run_remote_probe(node(transport="pigeon"), [], 60) == {"probe": {"failed": "there is no transport 'pigeon'"}}


def test_the_inventory_is_checked_against_the_settings_of_each_transport_of_assay() -> None:
    for name in filter(TRANSPORTS.is_own, TRANSPORTS.names()):
        transport = TRANSPORTS.load(name)
        assert not transport.settings_name or transport.settings_name in NodeSettings.model_fields


def test_local_is_this_machine_even_from_within_a_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_ROOT", str(tmp_path))
    host = run_remote_probe(node(transport="local"), [], 60)["probe"]["host"]
    assert host["boot_id"] == {"value": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}


def test_the_probe_ends_before_who_asked_for_it_gives_up() -> None:
    script = [sys.executable, "-c", "import json, sys; print(json.dumps({'probe': {'a': {'value': sys.argv[1:]}}}))"]
    told = run_remote_probe(node(reach=script), ["--since", "7"], 20)["probe"]["a"]["value"]
    assert told == ["python3", "-I", "-S", "-", "--since", "7", "--deadline", "18"]
    active = run_remote_probe(node(reach=script), ["--active", "memory"], 600)["probe"]["a"]["value"]
    assert "--deadline" not in active


@pytest.mark.slow
def test_many_threads_that_want_the_probe_at_once_all_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever collects garbage lets other threads in, even in the middle of ast.parse: CPython 3.11 breaks then.

    So does a library of another thread that parses: inspect.signature of a builtin does.
    """
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    build_pack.cache_clear()
    command._fetch_probe_script.cache_clear()
    before, switching, over = gc.get_threshold(), sys.getswitchinterval(), Event()
    other = Thread(target=parse_until, args=(over,))
    other.start()
    gc.callbacks.append(let_others_in)
    gc.set_threshold(200, 10, 10)
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as threads:
            scripts = [one.result() for one in [threads.submit(command.build_probe_script) for _ in range(8)]]
    finally:
        over.set()
        other.join()
        gc.callbacks.remove(let_others_in)
        gc.set_threshold(*before)
        sys.setswitchinterval(switching)
    assert set(scripts) == {command.build_probe_script()}


def test_a_script_that_is_kept_is_the_one_that_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    built = list[bool]()

    def build(with_nvml: bool) -> bytes:
        built.append(with_nvml)
        return command._build_probe_script(with_nvml)

    scripts = [fetch_or_build(with_nvml, build) for with_nvml in (True, False, True, False)]
    assert scripts[:2] == scripts[2:] == [command._build_probe_script(nvml) for nvml in (True, False)]
    assert built == [True, False]
    monkeypatch.setattr(command, "fingerprint_program", lambda rooms: "other sources")
    assert fetch_or_build(True, build) == scripts[0]
    assert built == [True, False, True]


def parse_until(over: Event) -> None:
    """Parse without end, as code that is not ours does."""
    source = Path(__file__).read_text()
    while not over.wait(0.0002):
        with suppress(SystemError):
            ast.parse(source)


def let_others_in(*_: Any) -> None:
    time.sleep(0.0001)
