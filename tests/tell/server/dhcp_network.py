"""A network of its own with a DHCP server that calls `deploy/assay-seen`, and a machine that asks it for an address.

`unshare -n python -m tests.tell.server.dhcp_network dnsmasq|kea HOME` prints what the ledger of a site in HOME has of
the machine.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from assay.ledger.store import Ledger
from tests.support.places import ROOT
from tests.support.site_of_agents import Site, digest

MAC, TOKEN = "02:00:5e:00:21:00", "token-of-the-dhcp-server-51c0"
SCRIPT = ROOT / "deploy/assay-seen"
KEA_HOOKS = f"/usr/lib/{platform.machine()}-linux-gnu/kea/hooks/libdhcp_run_script.so"
CLIENT = ["busybox", "udhcpc", "-i", "veth1", "-n", "-q", "-f", "-t", "20", "-T", "1", "-s", "/bin/true"]


def make_network() -> None:
    """Make two ends of a cable: the server's, with an address, and the machine's."""
    for words in (
        "link set lo up",
        "link add veth0 type veth peer name veth1",
        f"link set veth1 address {MAC}",
        "link set veth0 up",
        "link set veth1 up",
        "addr add 10.9.0.1/24 dev veth0",
    ):
        subprocess.run(["ip", *words.split()], check=True)


def write_hook(site: Site) -> Path:
    """Write the script's settings, and a program that calls it with them: Kea hands over no environment."""
    header, settings, hook = (site.home / name for name in ("seen.header", "seen.conf", "hook"))
    header.write_text(f"Authorization: Bearer {TOKEN}\n")
    settings.write_text(f"ASSAY_URL={site.url}\nASSAY_CA={site.home / 'ca.pem'}\nASSAY_TOKEN_HEADER={header}\n")
    hook.write_text(f'#!/bin/sh\nASSAY_SEEN_CONF={settings} exec {SCRIPT} "$@"\n')
    hook.chmod(0o755)
    return hook


def name_server(kind: str, home: Path, hook: Path) -> list[str]:
    """Return the command of a DHCP server that calls `hook` for each lease."""
    if kind == "dnsmasq":
        words = ["dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--interface=veth0", "--user=root"]
        return [
            *words,
            "--dhcp-range=10.9.0.50,10.9.0.60,1h",
            f"--dhcp-leasefile={home}/leases",
            f"--dhcp-script={hook}",
        ]
    called = {"library": KEA_HOOKS, "parameters": {"name": str(hook), "sync": False}}
    settings: dict[str, Any] = {"interfaces-config": {"interfaces": ["veth0"]}, "hooks-libraries": [called]}
    settings["lease-database"] = {"type": "memfile", "persist": False}
    settings["subnet4"] = [{"id": 1, "subnet": "10.9.0.0/24", "pools": [{"pool": "10.9.0.50-10.9.0.60"}]}]
    (home / "kea.json").write_text(json.dumps({"Dhcp4": settings}))
    return ["kea-dhcp4", "-c", str(home / "kea.json")]


def read_seen(site: Site) -> list[dict[str, Any]]:
    ledger = Ledger.open(site.fleet / ".assay/ledger.sqlite")
    try:
        return [dict(entry.body) for entry in ledger.entries(kinds=["machine.seen"])]
    finally:
        ledger.close()


def main(kind: str, home: Path) -> None:
    """Serve, ask for an address, and print what was reported."""
    make_network()
    site = Site(home)
    spec = site.fleet / "specs/provisioning/lab1.yaml"
    spec.write_text(f"{spec.read_text()}\nreport_token: {{sha256: {digest(TOKEN)}}}\n")
    site.serve()
    folders = {"KEA_PIDFILE_DIR": str(home), "KEA_LOCKFILE_DIR": str(home)}
    with (home / "dhcp.log").open("w") as log:
        command = name_server(kind, home, write_hook(site))
        server = subprocess.Popen(command, env={**os.environ, **folders}, stdout=log, stderr=log)
    try:
        subprocess.run(CLIENT, check=True, capture_output=True)
        sys.stdout.write(json.dumps(site.wait_for(lambda: read_seen(site), f"{kind} reports its lease")))
    finally:
        server.terminate()
        server.wait()
        site.end()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
