"""The same comparison with ibtopodiff of ibutils 1.5.7: design as `.topo`, discovery as `.lst`.

The packaged program ends with "buffer overflow detected", because it writes a GUID of 19 bytes into 18; a preloaded
`__sprintf_chk` without the check lets it run. It knows neither HDR nor NDR, so both files have its default speed.
Everything matches; a swap would cost the same.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.design.topology_cache import load_topology
from bench.big_fabric import RAILS
from bench.cost import Cost, cost
from bench.programs import ROOT

SHIM = r"""
#include <stdarg.h>
#include <stdio.h>
int __sprintf_chk(char *to, int flag, size_t size, const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  int written = vsprintf(to, format, rest);
  va_end(rest);
  return written;
}
"""
PROGRAM, PACKAGE = "ibtopodiff", "ibutils"


def find_obstacle() -> str:
    """Return why ibtopodiff cannot be measured here, "" if it can."""
    if not shutil.which(PROGRAM):
        return f"{PROGRAM} is not installed (Debian: {PACKAGE})"
    return "" if shutil.which("cc") else "there is no C compiler (cc) for the shim that lets ibtopodiff run"


def topodiff(fleet: Path, folder: Path, times: int = 3) -> Cost:
    """Return the cost to compare the fabric of a repository with a matching discovery."""
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "bench.topodiff", str(fleet), str(folder)], cwd=ROOT, check=True)
    shim = folder / "shim.so"
    build = ["cc", "-O1", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", "-x", "c", "-", "-o", str(shim)]
    subprocess.run(build, input=SHIM, check=True, text=True)
    command = [
        "env",
        f"LD_PRELOAD={shim}",
        f"IBDM_IBNL_PATH={folder}",
        PROGRAM,
        "-e",
        "-t",
        "big.topo",
        "-d",
        "big.lst",
    ]
    answer = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True).stdout
    if "ports match the provided topology" not in answer:
        raise RuntimeError(f"{PROGRAM} did not compare: {answer[-300:]}")
    return cost(command, folder, times=times, well=range(256))


def write(plan: CompiledTopology, folder: Path) -> None:
    """Write the design and a discovery of it in ibtopodiff's own formats."""
    ports = "".join(f"   {port} -> P{port}\n" for port in range(1, 65))
    (folder / "QM9700.ibnl").write_text(f"TOPSYSTEM QM9700\n\nNODE SW 64 MT54002 U1\n{ports}\n")
    adapters = "".join(f"NODE CA 1 MT4129 U{rail}\n   1 -> P{rail}\n\n" for rail in range(1, RAILS + 1))
    (folder / "CX7.ibnl").write_text(f"TOPSYSTEM CX7\n\n{adapters}")
    (folder / "big.topo").write_text(_topo(plan))
    with (folder / "big.lst").open("w") as file:
        lids = {guid: lid for lid, guid in enumerate(plan.devices, start=1)}
        for cable in plan.cables:
            ends = [_end(plan.devices[end.guid], lids[end.guid], end.port) for end in cable.ends]
            for near, far in (ends, ends[::-1]):
                file.write(f"{near} {far} PHY=4x LOG=ACT SPD=2.5\n")


def _topo(plan: CompiledTopology) -> str:
    systems: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cable in plan.cables:
        low, high = (plan.devices[end.guid] for end in cable.ends)
        name, port = (low.node, _rail(low)) if low.node else (low.name, cable.a.port)
        systems["CX7" if low.node else "QM9700", name].append(f"   P{port} -> QM9700 {high.name} P{cable.b.port}\n")
        systems.setdefault(("QM9700", high.name), [])
    return "".join(f"{kind} {name}\n{''.join(lines)}\n" for (kind, name), lines in systems.items())


def _end(device: DesignedDevice, lid: int, port: int) -> str:
    """Return one end of a cable, with hexadecimal numbers."""
    guid = device.guid[2:]
    kind, model, name = ("CA Ports:01", "1021", f"{device.node} HCA-{_rail(device)}")
    if not device.node:
        kind, model, name = ("SW Ports:40", "D2F2", device.name)
    ids = f"SystemGUID:{guid} NodeGUID:{guid} PortGUID:{guid} VenID:000002C9 DevID:0000{model} Rev:00000000"
    return f"{{ {kind} {ids} {{{name}}} LID:{lid:04x} PN:{port:02x} }}"


def _rail(device: DesignedDevice) -> int:
    """Return the rail of an adapter (`n00001 mlx5_0`), counted from 1."""
    return int(device.name.rpartition("_")[2]) + 1 if device.node else 0


if __name__ == "__main__":
    write(load_topology(Path(sys.argv[1])), Path(sys.argv[2]))
