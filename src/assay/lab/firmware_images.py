"""The synthetic firmware images of the example bundles. `python -m assay.lab.firmware_images [ROOT]` writes them.

An image is one line of JSON, `{"component": …, "version": …, "inventory": […]}`, and padding derived from that line.
The lab's BMC reads only the line.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Images = dict[str, tuple[str, list[str]]]
"""Component → (version, inventory ids)."""

SIZE = 4096
GPUS = [f"HGX_FW_GPU_SXM_{slot}" for slot in range(1, 9)]
SWITCHES = [f"HGX_FW_NVSwitch_{switch}" for switch in range(4)]
RETIMERS = [f"HGX_FW_PCIeRetimer_{retimer}" for retimer in range(8)]
HCAS = [f"HCA_{rail}" for rail in range(8)]

IMAGES: Images = {
    "bmc": ("01.05.11", ["BMC"]),
    "bios": ("2.7.3", ["BIOS"]),
    "hmc": ("HGX-22.10-1-rc82", ["HGX_FW_BMC_0"]),
    "gpu": ("96.00.BC.00.01", GPUS),
    "nvswitch": ("96.10.6D.00.01", SWITCHES),
    "retimer": ("2.7.20", RETIMERS),
    "hca": ("28.43.2026", HCAS),
}
BUNDLES: dict[str, Images] = {
    "hgx-h100-2026-10": IMAGES,
    "hgx-h200-2026-10": {**IMAGES, "gpu": ("96.00.A5.00.03", GPUS)},
    "hgx-b200-2026-10": {
        "bmc": ("25.06.27", ["BMC"]),
        "bios": ("1.6.7", ["BIOS"]),
        "hmc": ("HGXB-25.06-A", ["HGX_FW_BMC_0"]),
        "gpu": ("97.00.88.00.0F", GPUS),
        "nvswitch": ("35.2014.1600", SWITCHES[:2]),
        "hca": ("28.43.2026", HCAS),
    },
    "gb200-nvl72-1.3": {
        "bmc": ("GB200Nvl-25.06-A", ["FW_BMC_0"]),
        "hmc": ("GB200Nvl-25.06-A", ["HGX_FW_BMC_0"]),
        "bios": ("02.04.12", ["HGX_FW_CPU_0", "HGX_FW_CPU_1"]),
        "gpu": ("97.00.B9.00.69", [f"HGX_FW_GPU_{gpu}" for gpu in range(4)]),
        "fpga": ("1.54", ["HGX_FW_FPGA_0", "HGX_FW_FPGA_1"]),
        "cpld": ("0.22", ["HGX_FW_CPLD_0"]),
        "hca": ("28.46.3048", [f"CX7_{rail}" for rail in range(4)]),
    },
    "gb300-nvl72": {
        "bios": ("02.04.12", ["HGX_FW_CPU_0", "HGX_FW_CPU_1"]),
        "gpu": ("97.10.4A.00.1A", [f"HGX_FW_GPU_{gpu}" for gpu in range(4)]),
        "hca": ("40.46.3048", [f"CX8_{rail}" for rail in range(4)]),
    },
}


def make_image(component: str, version: str, inventory: Sequence[str]) -> bytes:
    """Return the image of `component` at `version` for the inventory ids it brings there; always the same bytes."""
    header = json.dumps({"component": component, "version": version, "inventory": list(inventory)}).encode() + b"\n"
    padding, block = b"", hashlib.sha256(header).digest()
    while len(header) + len(padding) < SIZE:
        padding += block
        block = hashlib.sha256(block).digest()
    return (header + padding)[:SIZE]


def read_image_header(content: bytes) -> dict[str, Any]:
    """Return the header of an image. Raises ValueError for bytes that are no image."""
    plain = json.loads(content.split(b"\n", 1)[0])
    if not isinstance(plain, dict) or set(plain) != {"component", "version", "inventory"}:
        raise ValueError("not an image: the first line must hold component, version and inventory")
    return plain


def image_path(component: str, version: str) -> str:
    """Return an image's path below the fleet repository."""
    return f"firmware/{component}-{version}.bin"


def write_images(root: Path) -> list[Path]:
    """Write all images of all bundles below `root` and return their paths. Bundles may share an image."""
    distinct = {(name, version): ids for images in BUNDLES.values() for name, (version, ids) in images.items()}
    written = []
    for (component, version), inventory in distinct.items():
        target = root / image_path(component, version)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(make_image(component, version, inventory))
        written.append(target)
    return written


if __name__ == "__main__":
    write_images(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
