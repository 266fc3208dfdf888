"""What cloud-init gets: as declared, valid by cloud-init's own schema, whole with any text, and without a secret."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.act.boot.cloud_init import NodeBoot, make_user_data, make_vendor_data, read_authorities, render_node_data
from assay.model.errors import AssayError
from tests.act.boot.declared_boot import CERTIFICATE, EVERYTHING, KEY, make_boot

SCHEMA = Path("/usr/lib/python3/dist-packages/cloudinit/config/schemas/schema-cloud-config-v1.json")
PRIVATE = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n"
NETWORK = {
    "ethernets": {
        "mgmt0": {"mac": "02:00:5E:00:21:01"},
        "mgmt1": {"mac": "02:00:5e:00:21:02"},
        "ib0": {"rail": 0, "addresses": ["10.10.0.21/24"], "mtu": 4092},
    },
    "bonds": {"bond0": {"interfaces": ["mgmt0", "mgmt1"], "mtu": 9000}},
    "vlans": {"bond0.20": {"id": 20, "link": "bond0", "addresses": ["10.20.0.21/24"], "gateway": "10.20.0.1"}},
    "nameservers": ["10.20.0.2"],
    "search": ["lab1.example"],
}


def read(boot: NodeBoot, name: str) -> Any:
    return yaml.safe_load(render_node_data(boot)[name])


def find_file(data: dict[str, Any], path: str) -> dict[str, Any]:
    return next(file for file in data["write_files"] if file["path"] == path)


def test_each_start_is_an_instance_of_its_own() -> None:
    assert read(make_boot(), "meta-data") == {"instance-id": "7f" * 8, "local-hostname": "n1"}


def test_the_system_is_as_declared() -> None:
    data = read(make_boot(**EVERYTHING), "user-data")
    assert data["users"] == [
        {
            "name": "ops",
            "lock_passwd": True,
            "shell": "/bin/bash",
            "groups": "adm,video",
            "sudo": "ALL=(ALL) NOPASSWD:ALL",
            "ssh_authorized_keys": [KEY],
        }
    ]
    assert data["ntp"]["servers"] == ["ntp1.example"]
    assert data["packages"] == ["chrony"]
    assert [words[-1] for words in data["runcmd"]] == [
        "nvidia-persistenced.service",
        "assay-join.service",
        "assay-agent.service",
    ]
    assert find_file(data, "/etc/motd")["content"] == "hello\n"
    assert find_file(data, "/home/ops/x")["defer"]
    assert find_file(data, "/etc/assay-agent/env")["content"] == "ASSAY_SERVER=https://boot.example:8443\n"
    assert find_file(data, "/etc/assay-agent/ca.pem")["content"] == CERTIFICATE


def test_the_node_learns_what_it_joins_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_KEY", "CANARY")
    boot = make_boot(**EVERYTHING)
    plan = json.loads(find_file(read(boot, "user-data"), "/etc/assay/joins.json")["content"])
    assert plan["secure_url"] == "https://boot.example:8443"
    assert plan["joins"]["kubernetes"]["taints"] == [{"key": "assay/unproven", "effect": "NoSchedule"}]
    assert plan["joins"]["slurm"] == {"conf_server": "slurm.example:6817", "key_path": "/etc/slurm/slurm.key"}
    everything = "".join(render_node_data(boot).values())
    assert "CANARY" not in everything
    assert "SLURM_KEY" not in everything


def test_the_network_has_bonds_vlans_and_rails() -> None:
    config = read(make_boot(NETWORK), "network-config")
    assert config["version"] == 2
    assert config["ethernets"]["mgmt0"]["match"] == {"macaddress": "02:00:5e:00:21:01"}
    assert config["ethernets"]["ib0"] == {"dhcp4": False, "addresses": ["10.10.0.21/24"], "mtu": 4092}
    assert config["bonds"]["bond0"]["parameters"]["mode"] == "802.3ad"
    vlan = config["vlans"]["bond0.20"]
    assert vlan["routes"] == [{"to": "0.0.0.0/0", "via": "10.20.0.1"}]
    assert vlan["nameservers"] == {"addresses": ["10.20.0.2"], "search": ["lab1.example"]}
    assert "nameservers" not in config["ethernets"]["ib0"]


def test_a_node_without_declared_network_is_left_to_cloud_init() -> None:
    assert "network-config" not in render_node_data(make_boot())


def test_assays_own_keys_hide_none_that_are_declared() -> None:
    assert not make_vendor_data().keys() & make_user_data(make_boot(**EVERYTHING)).keys()


def test_nodes_get_certificates_and_no_key_beside_them(tmp_path: Path) -> None:
    provisioning = make_boot(ca_file="ca.pem").provisioning
    (tmp_path / "ca.pem").write_text(f"{CERTIFICATE}{PRIVATE}")
    assert read_authorities(tmp_path, provisioning) == {"ca.pem": CERTIFICATE}
    (tmp_path / "ca.pem").write_text(PRIVATE)
    with pytest.raises(AssayError, match="has no certificate"):
        read_authorities(tmp_path, provisioning)
    (tmp_path / "ca.pem").unlink()
    with pytest.raises(AssayError, match="cannot be read"):
        read_authorities(tmp_path, provisioning)


HOSTILE = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [
        "\n#cloud-config\nruncmd: [reboot]",
        "a: b\n- c",
        "## template: jinja\n{{ 1 }}",
        "'\"\\",
        "!!python/object",
        "\x00",
    ]
)


@settings(deadline=None)
@given(HOSTILE, HOSTILE, st.from_regex(r"\A/[^/\x00]+\Z"))
def test_no_text_changes_the_document_around_it(content: str, label: str, path: str) -> None:
    joins = {"kubernetes": {**EVERYTHING["joins"]["kubernetes"], "labels": {label: content}}}  # type: ignore[index]
    boot = make_boot(files=[{"path": path, "content": content}], joins=joins)
    text = render_node_data(boot)["user-data"]
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text) == make_user_data(boot)
    written = find_file(yaml.safe_load(text), path)
    assert written["content"] == content
    assert json.loads(find_file(yaml.safe_load(text), "/etc/assay/joins.json")["content"])["joins"]["kubernetes"][
        "labels"
    ] == {label: content}


needs_cloud_init = pytest.mark.skipif(
    not (shutil.which("cloud-init") and SCHEMA.exists()), reason="cloud-init is not installed: make system"
)


def check_schema(tmp_path: Path, text: str) -> str:
    """Return what cloud-init finds wrong: its schema's words, and top-level keys that it does not know."""
    (tmp_path / "x.yaml").write_text(text)
    command = ["cloud-init", "schema", "--config-file", str(tmp_path / "x.yaml")]
    answer = subprocess.run(command, check=False, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    modules = json.loads(SCHEMA.read_text())["$defs"].values()
    known = {key for module in modules for key in module.get("properties", {})}  # 22.4 lets an unknown key pass
    unknown = sorted(yaml.safe_load(text).keys() - known)
    return f"{answer.stdout}{answer.stderr}{unknown}" if answer.returncode or unknown else ""


@needs_cloud_init
@pytest.mark.parametrize("declared", [{}, EVERYTHING], ids=["least", "everything"])
def test_cloud_init_takes_it(tmp_path: Path, declared: dict[str, Any]) -> None:
    assert check_schema(tmp_path, render_node_data(make_boot(**declared))["user-data"]) == ""


@needs_cloud_init
def test_cloud_init_takes_assays_own_keys(tmp_path: Path) -> None:
    assert check_schema(tmp_path, render_node_data(make_boot())["vendor-data"]) == ""


@needs_cloud_init
@pytest.mark.parametrize("text", ["users: 7", "pakages: [x]"])
def test_cloud_init_would_say_what_is_wrong(tmp_path: Path, text: str) -> None:
    assert check_schema(tmp_path, f"#cloud-config\n{text}\n")


@needs_cloud_init
def test_cloud_init_makes_networkd_files_of_the_network(tmp_path: Path) -> None:
    (tmp_path / "network").write_text(render_node_data(make_boot(NETWORK))["network-config"])
    command = ["cloud-init", "devel", "net-convert", "-p", str(tmp_path / "network"), "-k", "yaml", "-d", str(tmp_path)]
    environment = {"PATH": "/usr/bin:/bin"}
    subprocess.run([*command, "-D", "ubuntu", "-O", "networkd"], check=True, capture_output=True, env=environment)
    made = {path.name: path.read_text() for path in tmp_path.rglob("*.network")}
    assert "Gateway=10.20.0.1" in made["10-cloud-init-bond0.20.network"]
    assert "Address=10.10.0.21/24" in made["10-cloud-init-ib0.network"]
