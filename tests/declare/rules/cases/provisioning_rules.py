"""Deliveries, images and provisioning: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import Case

IMAGE_FILE, SITE_FILE, DELIVERY_FILE = "specs/image.yaml", "specs/site.yaml", "specs/delivery.yaml"


def image(node_specs: str = "small") -> dict[str, str | None]:
    kernel = f"{{url: 'https://images.example/vmlinuz', sha256: '{'0' * 64}'}}"
    head = "kind: Image\nname: gpu\nsources: [us]\nversion: '1'\n"
    return {IMAGE_FILE: f"{head}node_specs: [{node_specs}]\nkernel: {kernel}\n"}


def site(wanted: str = "gpu", name: str = "site", pools: str = "pool-a") -> dict[str, str | None]:
    head = f"kind: Provisioning\nname: {name}\nsources: [us]\npools: [{pools}]\n"
    urls = "url: http://boot.example\nsecure_url: https://boot.example\n"
    return {f"specs/{name}.yaml": f"{head}{urls}images: {{small: {wanted}}}\n"}


def delivery(name: str = "n9", serial: str = "S9", node_spec: str = "small") -> dict[str, str | None]:
    head = "kind: ExpectedMachines\nname: new\nvendor: V\nmodel: M\npool: a\nsite: s\n"
    machine = f"{{serial_number: {serial}, name: {name}, bmc_mac: '02:00:00:00:00:01', rack: r1, u: 1}}"
    return {DELIVERY_FILE: f"{head}node_spec: {node_spec}\nprofile: managed\nmachines:\n  - {machine}\n"}


CASES: dict[str, Case] = {
    "ASY0360": Case({**site("gpv"), **image()}, {**site(), **image()}, f"{SITE_FILE}:7:10"),
    "ASY0361": Case({**site(), **image("other")}, {**site(), **image()}, f"{SITE_FILE}:7:10"),
    "ASY0362": Case(
        {**site(), **site(name="twin", pools=""), **image()},
        {**site(), **site(name="twin", pools="b"), **image()},
        "specs/twin.yaml:2:1",
    ),
    "ASY0363": Case(delivery("n1"), delivery(), f"{DELIVERY_FILE}:10:5"),
}
