"""`assay images` and `assay boot dhcp` as people use them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from assay.cli.app import app
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from tests.support.places import ROOT

FILES = {"vmlinuz": b"a kernel", "initrd.gz": b"its files"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the example fleet, whose image lies on the disk."""
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    spec = tmp_path / "specs/images/gpu-node.yaml"
    image = yaml.safe_load(spec.read_text())
    for (name, content), artifact in zip(FILES.items(), (image["kernel"], *image["initrds"]), strict=True):
        (tmp_path / name).write_bytes(content)
        artifact |= {"url": (tmp_path / name).as_uri(), "sha256": hashlib.sha256(content).hexdigest()}
    spec.write_text(yaml.safe_dump(image))
    return tmp_path


def run(root: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*words, "--fleet", str(root)])
    if isinstance(done.exception, AssayError):
        raise done.exception
    return done.exit_code, done.output


def test_images_shows_what_is_missing_and_fetches_it(root: Path) -> None:
    code, shown = run(root, "images")
    assert code == 1
    assert f"{load_fleet(root).images['gpu-node-2026.10'].label}  16 nodes" in shown
    assert shown.count("missing  ") == 2
    assert "fetch what is missing: assay images --fetch" in shown
    code, shown = run(root, "images", "--fetch")
    assert (code, "missing" in shown) == (0, False)
    code, shown = run(root, "images", "--format", "json")
    rows = json.loads(shown)
    assert [(row["file"], row["bytes"]) for row in rows] == [("kernel", 8), ("initrd0", 9)]


def test_a_file_that_is_not_the_declared_one_is_told_and_stays_missing(root: Path) -> None:
    (root / "vmlinuz").write_bytes(b"another kernel")
    code, shown = run(root, "images", "--fetch")
    assert code == 1
    assert f"its digest is {hashlib.sha256(b'another kernel').hexdigest()}, and not" in shown
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("  kernel")] == ["missing"]


def test_check_and_doctor_say_which_file_of_an_image_or_of_firmware_cannot_be_had(root: Path) -> None:
    spec = root / "specs/images/gpu-node.yaml"
    image = yaml.safe_load(spec.read_text())
    image["kernel"]["size"] = 99
    del image["stands_in"]
    spec.write_text(yaml.safe_dump(image))
    bundle = {"name": "bios", "version": "1", "inventory": ["BIOS"], "push": "multipart", "reset": "bmc", "order": 1}
    bundle["artifact"] = {"url": "https://127.0.0.1:9/bios.bin", "sha256": "0" * 64}
    firmware = {"kind": "FirmwareBundle", "name": "own", "components": [bundle], "owner": "x", "description": "x"}
    (root / "specs/firmware-own.yaml").write_text(yaml.safe_dump(firmware))
    (root / "initrd.gz").write_bytes(b"another")
    initrd = f"Image {image['name']} initrd0 has the digest {hashlib.sha256(b'another').hexdigest()}, and not"
    told = [
        f"specs/images/gpu-node.yaml:1: notice ASY0414: Image {image['name']} kernel has 8 bytes at its source, ",
        f"notice ASY0414: {initrd}",
        "notice ASY0414: FirmwareBundle own bios cannot be fetched: ",
    ]
    _, shown = run(root, "check")
    assert [words for words in told if words not in shown] == [], shown
    code, shown = run(root, "doctor")
    assert code == 1
    for words in (f"Image {image['name']} kernel", f"Image {image['name']} initrd0", "FirmwareBundle own bios"):
        assert f"missing  {words} (its nodes: " in shown, shown


def test_dhcp_is_printed_for_the_one_provisioning(root: Path) -> None:
    code, shown = run(root, "boot", "dhcp", "--for", "dnsmasq")
    assert code == 1
    assert "assay boot: without a MAC address: n0001..n0" in shown
    assert "dhcp-boot=tag:ipxe,http://boot.lab1.example:8080/boot/v1/ipxe" in shown
    for file in (root / "inventory").rglob("*.yml"):
        lines = re.sub(r"( +)bmc_address: 10\.20\.0\.(\d+)", r'\g<0>\n\1mac: "02:00:00:00:00:\2"', file.read_text())
        file.write_text(lines)
    code, shown = run(root, "boot", "dhcp", "--for", "kea")
    assert code == 0, "each node has its address now"
    assert json.loads(shown)["Dhcp4"]["client-classes"][0]["name"] == "ipxe"


def test_a_provisioning_that_does_not_exist_is_said_with_those_that_do(root: Path) -> None:
    with pytest.raises(AssayError, match="which Provisioning") as told:
        run(root, "boot", "dhcp", "--for", "kea", "--provisioning", "lab9")
    assert "lab1" in str(told.value)
