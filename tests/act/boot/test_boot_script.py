"""The iPXE script of a machine."""

from __future__ import annotations

from typing import Any

import pytest

from assay.act.boot.script import BootOrder, render_boot_script
from assay.model.specs.image import Image

FILE = {"url": "https://images.example/x", "sha256": "ab" * 32}
SIGNED = {**FILE, "signature_url": "https://images.example/x.sig"}


def make_order(**changed: Any) -> BootOrder:
    declared = {
        "kind": "Image",
        "name": "gpu",
        "sources": ["us"],
        "version": "1",
        "kernel": FILE,
        "initrds": [FILE, FILE],
    }
    return BootOrder("n1", Image.model_validate({**declared, **changed}), "http://boot.example:8080", "a1")


def test_a_machine_gets_kernel_initrds_and_the_way_to_its_data() -> None:
    lines = render_boot_script(make_order(arguments=["quiet"])).splitlines()
    assert lines[0] == "#!ipxe"
    kernel = lines[2].split()
    assert kernel[:4] == ["kernel", "--name", "kernel", f"http://boot.example:8080/boot/v1/images/{'ab' * 32}/kernel"]
    assert kernel[4:7] == ["initrd=initrd0", "initrd=initrd1", "quiet"]
    assert "ds=nocloud-net;s=http://boot.example:8080/boot/v1/data/a1/" in kernel
    assert [line.split()[:3] for line in lines[3:5]] == [
        ["initrd", "--name", "initrd0"],
        ["initrd", "--name", "initrd1"],
    ]
    assert lines[5] == "boot || goto failed"


@pytest.mark.parametrize(
    ("version", "source"),
    [
        ("", "nocloud-net"),
        ("22.4.2-1+deb12u4", "nocloud-net"),
        ("23.1", "nocloud-net"),
        ("23.2", "nocloud"),
        ("25.1.4", "nocloud"),
    ],
)
def test_the_argument_fits_the_version_of_cloud_init(version: str, source: str) -> None:
    assert f" ds={source};s=http://boot.example" in render_boot_script(make_order(cloud_init=version))


def test_the_kernel_is_told_the_digest_of_its_root() -> None:
    script = render_boot_script(make_order(root=FILE))
    assert f"assay.root_sha256={'ab' * 32}" in script
    assert "--name root" not in script


def test_a_signed_image_boots_only_verified() -> None:
    lines = render_boot_script(make_order(signed_by="keys/ca.pem", kernel=SIGNED, initrds=[SIGNED])).splitlines()
    verified = [number for number, line in enumerate(lines) if line.startswith("imgverify")]
    assert len(verified) == 2
    assert max(verified) < lines.index("boot || goto failed")
