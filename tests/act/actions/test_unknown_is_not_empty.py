"""No effect is proved, and none begins, by a reading that is not there: `unknown_readings.yaml`, row by row."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.act.actions.action import ACTION_NAMES, ActionContext, EffectIntent, load_action
from assay.act.effects.effect_attempt_and_verification import verify_safely
from assay.act.effects.gates import must_attempt_wait
from assay.act.remedies import bmc_updates, boot
from assay.act.remedies.dossier_build import locate_diagnostics, locate_dossier
from assay.act.remedies.firmware_stages import list_managed_components
from assay.act.remedies.gpu_occupancy import add_processes, require_empty
from assay.act.schedules.idle_visits import find_exclusion
from assay.adapters.bmc import client
from assay.adapters.bmc.firmware import FirmwareInventory
from assay.adapters.scheduler import NoScheduler, SchedulerNodeStatus, group_by_scheduler, read_node_status
from assay.cli.verbs.collectives import select_free_nodes
from assay.decide.state.node_state import NodeState
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.reading import absent, failed, value
from assay.model.specs.node.bmc_settings import BmcSpec
from assay.model.specs.node.host_settings import GpuSettings, HcaSettings
from assay.model.specs.node.node_spec import BootSpec, HostSpec
from assay.observe.evidence_store import EvidenceStore
from assay.observe.transports import transport
from assay.observe.transports.push import PushTransport
from assay.observe.transports.transport_protocol import TransportContext
from tests.act.quiet_site import FLEET, NODES, Hands

TABLE = yaml.safe_load((Path(__file__).parent / "unknown_readings.yaml").read_text())
WAYS = ("absent", "failed", "stale")
NODE = NODES[0]
SILENT = "no answer within 10 s"
GPU = "0000:1b:00.0"


@dataclass
class World:
    """All that an action reads of one node; `lacks` says what does not answer, and how."""

    home: Path
    lacks: dict[str, str] = field(default_factory=dict)
    has_scheduler: bool = True
    cordon: str = "assay: a test wants it"
    boot: str = "boot-2"
    power: str = "On"
    resets: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec = FLEET.spec_of(NODE)
        plain = {"host": HostSpec(transparent_hugepages="madvise"), "boot": BootSpec(), "bmc": BmcSpec(), "bios": {}}
        more = {"gpu_settings": GpuSettings(), "hca_settings": HcaSettings(), "hcas": [], "nics": []}
        bare = spec.model_copy(update={**plain, **more, "fabric_manager": None, "kernel_cmdline": []})
        nodes = {NODE: replace(FLEET.nodes[NODE], image="")}
        self.fleet = replace(FLEET, nodes=nodes, node_specs={spec.name: bare}, provisionings={})
        self.clock, self.store = Hands(), EvidenceStore(self.home / "evidence")

    def context(self) -> ActionContext:
        ledger = Ledger.open(":memory:")
        scheduler: Any = Scheduler(self) if self.has_scheduler else NoScheduler({})
        reports = self.home / "reports"
        return ActionContext(
            self.fleet, ledger, self.store, self.clock, self.home, reports, lambda _: scheduler, lambda _: None
        )

    def read(self) -> dict[str, Any]:
        """Return the probe's answer on a good day: a quiet GPU, another boot, settings as declared."""
        kernel = {"transparent_hugepages": value("madvise"), "versions": {"nvidia": value(FLEET.spec_of(NODE).driver)}}
        quiet = {"devices": {GPU: {"uuid": value("GPU-0"), "processes": {"pids": value([])}}}}
        return {
            "probe": {"host": {"boot_id": value(self.boot), "cmdline": value("quiet")}, "gpu": quiet, "kernel": kernel}
        }

    def ask(self, node: Any, arguments: Collection[str], deadline_s: float) -> dict[str, Any]:
        way = self.lacks.get("probe")
        if way == "failed":
            return failed(SILENT)
        if way == "stale":
            self.store.store_pushed(EvidenceDocument(NODE, self.clock.now() - timedelta(hours=9), self.read()))
            return PushTransport(TransportContext()).ask(node, arguments, deadline_s)
        if "--burn-in" in arguments:
            answer = {"id": "burn-in", "phases": 1, "running": True, "t": 1.0, "boot": "b", "m": 1.0, "log": "1"}
            return {"burn_in": absent("no such file") if way else {**answer, "lines": [], "more": False, "error": ""}}
        return (
            {"probe": dict.fromkeys(("host", "gpu", "kernel", "drive_wipe"), absent("no such file"))}
            if way
            else self.read()
        )

    @contextmanager
    def open_bmc(self, *_: Any, **__: Any) -> Iterator[Bmc]:
        if self.lacks.get("bmc") == "failed":
            raise AssayError("connection refused")
        yield Bmc(self)


@dataclass
class Scheduler:
    """One that refuses as Slurm and the API server do: a node that it does not know is missing from its answer."""

    world: World
    places_jobs = True

    def __hash__(self) -> int:
        return 1

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        way = self.world.lacks.get("scheduler")
        if way == "failed":
            raise AssayError("slurmctld does not answer")
        return {} if way else {node: SchedulerNodeStatus((), self.world.cordon) for node in nodes}


@dataclass
class Bmc:
    """A BMC whose answers may lack what they are read for."""

    world: World
    where = "bmc"

    def system(self) -> dict[str, Any]:
        return {} if self.world.lacks.get("bmc") else {"PowerState": self.world.power, "LastResetTime": "after"}

    def read_power_state(self) -> str:
        return client.BmcClient.read_power_state(self)  # type: ignore[arg-type]  # it only asks for system()

    def reset_system(self, kind: str) -> None:
        self.world.resets.append(kind)


def read_firmware(bmc: Bmc) -> FirmwareInventory:
    parts = [] if bmc.world.lacks.get("bmc") else list_managed_components(bmc.world.fleet, NODE)
    return FirmwareInventory({ident: value(part.version) for part in parts for ident in part.inventory}, {}, {})


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(bmc_updates, "read_firmware_inventory", read_firmware)
    monkeypatch.setattr(transport.TransportRegistry, "transport_for", lambda *_: made)
    for action in ACTION_NAMES:
        load_action(action)
    for module in [module for name, module in sys.modules.items() if name.startswith("assay.")]:
        if hasattr(module, "open_fleet_bmc"):
            monkeypatch.setattr(module, "open_fleet_bmc", made.open_bmc)
    return made


def list_rows(part: str) -> list[tuple[str, str, str, str]]:
    return [
        (name, source, way, row[source][way])
        for name, row in TABLE[part].items()
        for source in row
        if source not in ("at", "because")
        for way in WAYS
        if row[source][way] != "live"
    ]


BEFORE = {
    "gpu-reset": {"gpus": [0]},
    "reboot": {"boot_id": "boot-1"},
    "powercycle": {"boot_id": "boot-1"},
    "drain-now": {"jobs": []},
}
WITHOUT_BOOT_ID = {"last_reset": "before"}
NO_BASELINE = {
    "collect": "as the dossier",
    "dossier": "a file that only the real one writes",
    "wipe": "an order in the ledger",
}
"""Effects that this world cannot prove done; test_dossier_holds_the_proof and test_wipe_proves_drives do."""


def verdict(world: World, name: str, source: str = "") -> str:
    action, is_alone = name.partition(" ")[0], "without a scheduler" in name
    world.has_scheduler, world.cordon = not is_alone, "" if action == "uncordon" else world.cordon
    before = WITHOUT_BOOT_ID if source == "bmc" and action in BEFORE else BEFORE.get(action, {})
    world.power = "Off" if action == "poweroff" else world.power
    params = {"settings": ["host.transparent_hugepages"]}
    intent = EffectIntent(action, action, NODE, "d1", "a test wants it", before=before, params=params)
    return {True: "done", False: "not done", None: "unknown"}[
        verify_safely(world.context(), load_action(action), intent).done
    ]


def test_every_action_and_every_way_to_lack_a_reading_has_a_row():
    assert {name.partition(" ")[0] for name in TABLE["effects"]} == set(ACTION_NAMES)
    for part in TABLE.values():
        for name, row in part.items():
            sources = {source: ways for source, ways in row.items() if source not in ("at", "because")}
            assert sources, name
            assert all(set(ways) == set(WAYS) for ways in sources.values()), name
            told = {verdict for ways in sources.values() for verdict in ways.values()}
            assert bool({"done", "goes on"} & told) == ("because" in row), f"{name}: who goes on says why"


@pytest.mark.parametrize("name", [name for name in TABLE["effects"] if name not in NO_BASELINE])
def test_with_every_reading_there_the_effect_is_proved(world: World, name: str):
    sources = [source for source in TABLE["effects"][name] if source != "because"]
    assert {verdict(world, name, source) for source in sources} == {"done"}


@pytest.mark.parametrize(("name", "source", "way", "told"), list_rows("effects"))
def test_an_effect_is_not_proved_by_a_reading_that_is_not_there(
    world: World, name: str, source: str, way: str, told: str
):
    if source == "file":
        locate = locate_diagnostics if name == "collect" else locate_dossier
        path = locate(world.home / "reports", NODE, name)
        path.parent.mkdir(parents=True)
        if way != "absent":
            path.write_bytes(b"" if way == "failed" else b"PK\x05\x06" + bytes(18))
    world.lacks[source] = way
    assert verdict(world, name, source) == told


def _wants_idle(world: World) -> None:
    context = world.context()
    if way := world.lacks.get("probe"):
        age = timedelta(hours=9 if way == "stale" else 0)
        channels = {"probe": failed(SILENT)} if way == "failed" else world.read() if way == "stale" else {"probe": {}}
        context.evidence.store_latest(EvidenceDocument(NODE, world.clock.now() - age, channels))
    readings = group_by_scheduler([world.fleet.nodes[NODE]], context.workloads).read_statuses()
    if NODE not in add_processes(context, readings).statuses:
        raise AssayError("cannot tell what is in use")


def _wants_empty(world: World) -> None:
    context = world.context()
    require_empty(context, NODE, read_node_status(context.scheduler(NODE), NODE), "nothing is erased")


def _asks_scheduler(world: World) -> None:
    if must_attempt_wait(world.context(), EffectIntent("e", "reboot", NODE, "d1", "why")):
        raise AssayError("assay waits")


def _loads_idle_node(world: World) -> None:
    context = world.context()
    readings = group_by_scheduler([world.fleet.nodes[NODE]], context.workloads).read_statuses()
    serving = NodeState(NODE, "h100-a", "production", "", "stay", "as planted", "")
    if find_exclusion(context, serving, readings.statuses.get(NODE)):  # type: ignore[arg-type]  # asks the fleet only
        raise AssayError("skipped")


def _searches(world: World) -> None:
    readings = group_by_scheduler([world.fleet.nodes[NODE]], world.context().workloads).read_statuses()
    if not select_free_nodes([NODE], [NODE], readings, {}).free:
        raise AssayError("no node is free")


def _powers_on(world: World) -> None:
    boot.force_off_and_on(Bmc(world), 0.0)  # type: ignore[arg-type]


GATES: dict[str, Callable[[World], Any]] = {
    "act/effects/gates.py:must_attempt_wait": _asks_scheduler,
    "act/remedies/gpu_occupancy.py:require_empty": _wants_empty,
    "act/remedies/gpu_occupancy.py:add_processes": _wants_idle,
    "act/schedules/idle_visits.py:find_exclusion": _loads_idle_node,
    "cli/verbs/collectives.py:select_free_nodes": _searches,
    "act/remedies/boot.py:has_reset_since": lambda world: boot.has_reset_since(
        world.fleet.nodes[NODE], world.fleet, WITHOUT_BOOT_ID
    ),
    "act/remedies/boot.py:force_off_and_on": _powers_on,
}


@pytest.mark.parametrize(("name", "source", "way", "told"), list_rows("gates"))
def test_nothing_begins_by_a_reading_that_is_not_there(world: World, name: str, source: str, way: str, told: str):
    world.has_scheduler = "without a scheduler" not in name
    world.lacks[source] = way
    try:
        if source == "bmc":
            with world.open_bmc():
                pass
        GATES[TABLE["gates"][name]["at"]](world)
    except AssayError:
        assert told == "waits"
    else:
        assert told == "goes on"
    assert "On" not in world.resets


def test_a_process_of_a_node_without_a_scheduler_is_its_job(world: World):
    world.has_scheduler = False
    busy = world.read()
    busy["probe"]["gpu"]["devices"][GPU]["processes"]["pids"] = value([4711])
    context = world.context()
    context.evidence.store_latest(EvidenceDocument(NODE, world.clock.now(), busy))
    readings = add_processes(context, group_by_scheduler([world.fleet.nodes[NODE]], context.workloads).read_statuses())
    assert list(map(str, readings.statuses[NODE].jobs)) == [f"process 4711 holds GPU {GPU}"]
