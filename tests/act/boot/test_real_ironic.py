"""The real Ironic installs: its API and its conductor, with hardware that does at once what it is told (fake-hardware).

What `tests/act/boot/provisioners.py` says of Ironic is held to it here.
"""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assay.act.actions import netboot
from assay.adapters import provisioner
from assay.model.errors import AssayError
from tests.act.boot.boot_room import lay_out_boot
from tests.act.boot.provisioners import TOKEN, Ironic, order_ironic, serve
from tests.act.boot.test_other_provisioners import begin, declare, install
from tests.support.lab_room import Room, lab_room
from tests.support.places import ROOT
from tests.support.reserved_ports import reserve_ports

BIN = ROOT / ".venv-ironic" / "bin"
NODE, PASSWORD = "n0003", "for a test"
BASIC = "Basic " + base64.b64encode(f"assay:{PASSWORD}".encode()).decode()
PATIENCE_S = 300.0
CONFIG = """\
[DEFAULT]
auth_strategy = http_basic
http_basic_auth_user_file = {home}/users
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = no-console
enabled_deploy_interfaces = fake
enabled_firmware_interfaces = no-firmware
enabled_inspect_interfaces = no-inspect
enabled_management_interfaces = fake
enabled_network_interfaces = noop
enabled_power_interfaces = fake
enabled_raid_interfaces = no-raid
enabled_rescue_interfaces = no-rescue
enabled_storage_interfaces = noop
enabled_vendor_interfaces = no-vendor
default_deploy_interface = fake
default_network_interface = noop
rpc_transport = none
host = here
my_ip = 127.0.0.1
state_path = {home}
[api]
host_ip = 127.0.0.1
port = {port}
[conductor]
automated_clean = false
[database]
connection = sqlite:///{home}/ironic.sqlite
"""


@dataclass(frozen=True)
class RealIronic:
    """The running service."""

    url: str

    def ask(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": BASIC, "X-OpenStack-Ironic-API-Version": "1.82", "Content-Type": "application/json"}
        content = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, content, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def bring(self, target: str, state: str) -> None:
        self.ask("PUT", f"/v1/nodes/{NODE}/states/provision", {"target": target})
        self.wait(lambda node: node["provision_state"] == state)

    def wait(self, is_so: Any) -> dict[str, Any]:
        ends = time.monotonic() + PATIENCE_S
        while not is_so(node := self.ask("GET", f"/v1/nodes/{NODE}")):
            assert time.monotonic() < ends, node
            time.sleep(0.5)
        return dict(node)


@contextmanager
def run_ironic(home: Path) -> Iterator[RealIronic]:
    (port,) = reserve_ports(1)
    (home / "ironic.conf").write_text(CONFIG.format(home=home, port=port))
    hashing = "import bcrypt, sys; print(bcrypt.hashpw(sys.argv[1].encode(), bcrypt.gensalt(4)).decode())"
    hashed = subprocess.run([BIN / "python", "-c", hashing, PASSWORD], check=True, capture_output=True, text=True)
    (home / "users").write_text(f"assay:{hashed.stdout}")
    config = ["--config-file", str(home / "ironic.conf")]
    subprocess.run([BIN / "ironic-dbsync", *config, "create_schema"], check=True, capture_output=True)
    with (home / "log").open("wb") as log:
        running = subprocess.Popen([BIN / "ironic", *config], stdout=log, stderr=log)
    try:
        ironic, ends = RealIronic(f"http://127.0.0.1:{port}"), time.monotonic() + PATIENCE_S
        while True:
            try:
                if ironic.ask("GET", "/v1/drivers")["drivers"]:
                    break
            except OSError:
                assert running.poll() is None, (home / "log").read_text()[-4000:]
            assert time.monotonic() < ends, (home / "log").read_text()[-4000:]
            time.sleep(0.5)
        yield ironic
    finally:
        running.terminate()
        running.wait()


@pytest.fixture(scope="module")
def ironic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealIronic]:
    """The service with one node that it has installed."""
    if not (BIN / "ironic").exists():
        pytest.skip("Ironic is not installed: python3 -m venv .venv-ironic && .venv-ironic/bin/pip install ironic")
    with run_ironic(tmp_path_factory.mktemp("ironic")) as ironic:
        ironic.ask("POST", "/v1/nodes", {"name": NODE, "driver": "fake-hardware"})
        ironic.bring("manage", "manageable")
        ironic.bring("provide", "available")
        source = [{"op": "add", "path": "/instance_info/image_source", "value": "https://images.site/old.qcow2"}]
        ironic.ask("PATCH", f"/v1/nodes/{NODE}", source)
        ironic.bring("active", "active")
        yield ironic


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with lab_room(tmp_path_factory.mktemp("real"), lay_out=lambda root: lay_out_boot(root, 8080)) as room:
        yield room


def order_real(url: str) -> dict[str, Any]:
    other = order_ironic(url)
    return {**other, "headers": {**other["headers"], "X-Auth-Token": "", "Authorization": "{secret}"}}


@pytest.mark.slow(minutes=3)
def test_a_start_that_the_real_ironic_makes_is_proven_by_boot_and_image(ironic, room, monkeypatch) -> None:
    image, before = room.fleet.image_of(NODE), ironic.ask("GET", f"/v1/nodes/{NODE}")["provision_updated_at"]
    seen: list[str] = []

    def follow() -> None:
        """Restart the machine once Ironic has deployed it again, as the hardware would."""
        node = ironic.wait(lambda node: node["provision_updated_at"] != before and node["provision_state"] == "active")
        seen.append(node["instance_info"]["image_source"])
        install(room, image.label)

    monkeypatch.setattr(provisioner, "POLL_S", 0.2)
    monkeypatch.setenv("PROVISIONER", BASIC)
    declare(room, order_real(ironic.url))
    intent, machine = begin(room, "real"), threading.Thread(target=follow, daemon=True)
    machine.start()
    netboot.run(room.context(), intent)
    machine.join(PATIENCE_S)
    assert seen == [f"https://images.site/{image.name}.qcow2"]
    verified = netboot.verify(room.context(), intent)
    assert verified.done, verified.reason


REBUILD = {"target": "rebuild"}
PATCH = [{"op": "add", "path": "/instance_info/image_source", "value": "https://images.site/new.qcow2"}]


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize(
    ("method", "path", "body", "version"),
    [
        ("PUT", f"/v1/nodes/{NODE}/states/provision", {"target": "rebuild", "image": "x"}, "1.82"),
        ("PUT", f"/v1/nodes/{NODE}/states/provision", {"target": "rebild"}, "1.82"),
        ("PUT", f"/v1/nodes/{NODE}/states/provision", {"target": "provide"}, "1.82"),
        ("PUT", f"/v1/nodes/{NODE}/states/provision", {"target": "manage"}, "1.82"),
        ("POST", f"/v1/nodes/{NODE}/states/provision", REBUILD, "1.82"),
        ("PATCH", f"/v1/nodes/{NODE}", {"instance_info": {}}, "1.82"),
        ("PATCH", f"/v1/nodes/{NODE}", [{**PATCH[0], "op": "put"}], "1.82"),
        ("PATCH", f"/v1/nodes/{NODE}", [{**PATCH[0], "more": 1}], "1.82"),
        ("PUT", "/v1/nodes/n9999/states/provision", REBUILD, "1.82"),
        ("GET", f"/v1/nodes/{NODE}", None, "1.4"),
        ("GET", f"/v1/nodes/{NODE}", None, "newest"),
        ("GET", f"/v1/nodes/{NODE}", None, "1.82"),
        ("PATCH", f"/v1/nodes/{NODE}", PATCH, "1.82"),
    ],
)
def test_the_stand_in_answers_as_the_real_one(ironic, method: str, path: str, body: object, version: str) -> None:
    def ask(url: str, headers: dict[str, str]) -> int:
        content = json.dumps(body).encode() if body is not None else None
        headers |= {"X-OpenStack-Ironic-API-Version": version, "Content-Type": "application/json"}
        try:
            with urllib.request.urlopen(urllib.request.Request(url + path, content, headers, method=method)) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    with serve(Ironic(NODE, lambda _: None)) as url:
        said = ask(url, {"X-Auth-Token": TOKEN})
    assert said == ask(ironic.url, {"Authorization": BASIC})


@pytest.mark.slow
def test_what_the_real_ironic_refuses_ends_the_start(ironic, room, monkeypatch) -> None:
    monkeypatch.setenv("PROVISIONER", BASIC)
    for change, said in ({"headers": {}}, "401"), ({"state_path": "/v1/nodes/n9999"}, "404"):
        declare(room, order_real(ironic.url) | change, attempts=1)
        with pytest.raises(AssayError, match=said):
            netboot.run(room.context(), begin(room, said))
