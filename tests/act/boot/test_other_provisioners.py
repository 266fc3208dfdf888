"""Another tool installs the machines: assay orders a start from it, and believes only its own probe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from assay.act.actions import netboot
from assay.act.actions.action import EffectIntent
from assay.adapters import provisioner
from assay.adapters.provisioner import Provisioner
from assay.declare.loader import load_fleet
from assay.lab.bmc.power_transitions import reset_node
from assay.model.errors import AssayError
from assay.model.specs.provisioning import OtherProvisioner
from tests.act.boot.boot_room import lay_out_boot
from tests.act.boot.provisioners import MAAS_SECRET, TOKEN, Ironic, Maas, order_ironic, order_maas, serve
from tests.support.lab_room import Room, lab_room, wish

NODE, SYSTEM_ID = "n0003", "4y3h7n"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with lab_room(tmp_path_factory.mktemp("other"), lay_out=lambda root: lay_out_boot(root, 8080)) as room:
        variables = {"h100-a": {"hosts": {NODE: {"maas_id": SYSTEM_ID}}}}
        (room.root / "inventory/maas.yml").write_text(yaml.safe_dump(variables))
        yield room


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisioner, "POLL_S", 0.05)


def declare(room: Room, other: dict[str, Any], **more: Any) -> None:
    path = room.root / "specs/provisioning/lab1.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "other": other, **more}))
    room.fleet = load_fleet(room.root, [room.world.home / "inventory.yml"])


def begin(room: Room, name: str) -> EffectIntent:
    before = netboot.before(room.context(), wish("netboot", NODE))
    return EffectIntent(f"netboot-{name}", "netboot", NODE, "d1", "a test wants it", before=before)


def install(room: Room, label: str) -> None:
    """Restart the machine with what the tool has installed."""

    def start(state: dict[str, Any]) -> None:
        state.update(reset_node({**state, "power": {"state": "Off", "on_at": None}}, "On", room.world.clock().now()))
        words = [word for word in state["cmdline"].split() if not word.startswith("assay.")]
        state["cmdline"] = " ".join([*words, f"assay.image={label}"])

    room.change(NODE, start)


@pytest.mark.parametrize("tool", ["ironic", "maas"])
def test_a_start_that_another_tool_was_told_to_make_is_proven_by_boot_and_image(room, tool, monkeypatch):
    image = room.fleet.image_of(NODE)
    seen: list[str] = []

    def installs(source: str) -> None:
        seen.append(source)
        install(room, image.label)

    api = Ironic(NODE, installs) if tool == "ironic" else Maas(SYSTEM_ID, installs)
    monkeypatch.setenv("PROVISIONER", TOKEN if tool == "ironic" else MAAS_SECRET)
    with serve(api) as url:
        declare(room, order_ironic(url) if tool == "ironic" else order_maas(url))
        intent = begin(room, tool)
        assert netboot.verify(room.context(), intent).done is False, "the boot of before proves nothing"
        netboot.run(room.context(), intent)
        asked = list(api.asked)
        netboot.run(room.context(), intent)
        assert api.asked == asked, "what is proven is not ordered again"
    assert image.name in seen[0]
    assert len(asked) == 2
    verified = netboot.verify(room.context(), intent)
    assert verified.done
    assert image.name in verified.reason


def test_another_image_than_the_declared_one_proves_nothing(room, monkeypatch):
    api = Ironic(NODE, lambda _: install(room, "other:1:00000000"))
    monkeypatch.setenv("PROVISIONER", TOKEN)
    hasty = {"pxe": 1, "kernel": 1, "cloud_init": 1, "agent": 4, "source": "a test"}
    with serve(api) as url:
        declare(room, order_ironic(url), deadlines=hasty, attempts=1)
        intent = begin(room, "other-image")
        with pytest.raises(AssayError, match="no agent within 4 min"):
            netboot.run(room.context(), intent)
    assert netboot.verify(room.context(), intent).done is False


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"credentials": None, "headers": {}}, "401"),
        ({"state_path": "/v1/nodes/n9999"}, "404"),
        ({"state_path": "/v1/nodes/{maas_system}"}, "maas_system"),
        ({"failed": ["active"]}, "the machine is in active"),
    ],
)
def test_what_the_tool_refuses_is_told_and_ends_the_start(room, change, said, monkeypatch):
    api = Ironic(NODE, lambda _: pytest.fail("nothing was to be installed"))
    monkeypatch.setenv("PROVISIONER", TOKEN)
    with serve(api) as url:
        declare(room, order_ironic(url) | change, attempts=1)
        intent = begin(room, said)
        with pytest.raises(AssayError, match=said):
            netboot.run(room.context(), intent)
    assert api.asked == []


RELEASE, DEPLOY = order_maas("")["orders"]
PATCH, REBUILD = order_ironic("")["orders"]


@pytest.mark.parametrize(
    ("tool", "orders", "said"),
    [
        ("maas", [{**DEPLOY, "after": []}], "409"),
        ("maas", [RELEASE, {**DEPLOY, "form": {"series": "{image}"}}], "400"),
        ("maas", [RELEASE, {**DEPLOY, "path": DEPLOY["path"].replace("op-deploy", "op-install")}], "400"),
        ("maas", [RELEASE, {**DEPLOY, "after": [], "unless": ["Ready"]}], "409"),
        ("ironic", [REBUILD], "400"),
        ("ironic", [PATCH, {**REBUILD, "body": {"target": "active"}}], "400"),
        ("ironic", [PATCH, {**REBUILD, "body": {"target": "rebuild", "image": "x"}}], "400"),
        ("ironic", [PATCH, REBUILD, PATCH | {"after": []}], "409"),
    ],
)
def test_orders_that_the_tool_would_refuse_are_refused_and_told(room, tool, orders, said, monkeypatch, request):
    nothing: Callable[[str], None] = lambda _: None  # noqa: E731
    api = Ironic(NODE, nothing) if tool == "ironic" else Maas(SYSTEM_ID, nothing)
    monkeypatch.setenv("PROVISIONER", TOKEN if tool == "ironic" else MAAS_SECRET)
    with serve(api) as url:
        made = order_ironic(url) if tool == "ironic" else order_maas(url)
        declare(room, {**made, "orders": orders}, attempts=1)
        with pytest.raises(AssayError, match=said):
            netboot.run(room.context(), begin(room, request.node.name))


def test_a_state_may_stand_below_a_field() -> None:
    api = Ironic(NODE, lambda _: None)
    api.instance_info = {"status": {"state": "ready"}}
    with serve(api) as url:
        declared = order_ironic(url) | {"state_field": "instance_info.status.state"}
        asked = Provisioner(OtherProvisioner.model_validate(declared), {"node": NODE}, TOKEN)
        assert asked._read_state() == "ready"
        asked = Provisioner(
            OtherProvisioner.model_validate(declared | {"state_field": "name.state"}), {"node": NODE}, TOKEN
        )
        with pytest.raises(AssayError, match=r"has no name\.state"):
            asked._read_state()


def test_the_lab_reaches_no_provisioner_of_the_site(room):
    declare(room, order_ironic("https://ironic.example:6385"), attempts=1)
    with pytest.raises(AssayError, match="the lab"):
        netboot.run(room.context(), begin(room, "site"))
