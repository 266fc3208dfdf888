"""A BMC that is not ours: OpenStack's sushy-emulator, with a machine of libvirt in qemu behind it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import quoteattr

import requests
import trustme

from tests.support.reserved_ports import reserve_ports

NOBODY = 65534
"""libvirt's own daemon for a session does not run as root."""
PATIENCE_S = 60.0
USER, PASSWORD = "operator", "of-the-emulator"
SYSTEM = "5c0b1a9e-2f4d-4c5e-9a57-8f4c0d1e2a3b"
"""The Id of its system, which sushy-emulator shows in place of a serial number."""
DOMAIN = """\
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>machine</name>
  <uuid>{system}</uuid>
  <memory unit='MiB'>256</memory>
  <os><type arch='x86_64' machine='pc'>hvm</type><boot dev='network'/><smbios mode='sysinfo'/></os>
  <sysinfo type='smbios'><system><entry name='serial'>{serial}</entry></system></sysinfo>
  <on_reboot>destroy</on_reboot>
  <devices>
    <serial type='file'><source path={console}/></serial>
    <interface type='user'><model type='virtio'/><rom bar='off'/></interface>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-netdev'/><qemu:arg value='user,id=un0,bootfile={server}/boot/v1/ipxe'/>
    <qemu:arg value='-device'/>
    <qemu:arg value='virtio-net-pci,netdev=un0,mac={mac},bootindex=9,addr=0x10'/>
  </qemu:commandline>
</domain>
"""
"""The emulator takes an order to start from the network only where libvirt knows an interface. That has no boot file,
so the machine starts from the other one, which libvirt does not know."""


def find_missing_tool() -> str:
    """Return why there can be no such BMC here, "" if there can."""
    missing = [name for name in ("libvirtd", "virsh", "sushy-emulator", "setpriv") if not shutil.which(name)]
    packages = "libvirt-daemon-driver-qemu, libvirt-clients; pip install sushy-tools libvirt-python"
    return f"{', '.join(missing)} not found: install {packages}" if missing else ""


@contextmanager
def emulate_bmc(root: Path, server: str, mac: str, serial: str) -> Iterator[int]:
    """Yield the port of a BMC with HTTPS (authority: `ca.pem` at `root`), whose machine boots from `server`."""
    home = Path(tempfile.mkdtemp(prefix="assay-libvirt-"))
    (port,) = reserve_ports(1)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        socket = _start_libvirt(home, processes)
        domain = DOMAIN.format(
            system=SYSTEM, serial=serial, console=quoteattr(str(home / "console")), server=server, mac=mac
        )
        (home / "domain.xml").write_text(domain)
        subprocess.run(["virsh", "-c", socket, "define", home / "domain.xml"], check=True, capture_output=True)
        _start_emulator(root, home, socket, port, processes)
        yield port
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
        subprocess.run(["pkill", "-KILL", "-f", str(home)], check=False)
        shutil.rmtree(home, ignore_errors=True)


def _start_libvirt(home: Path, processes: list[subprocess.Popen[bytes]]) -> str:
    """Start a daemon of its own, and return the address of its socket."""
    for name in ("run/libvirt", "config/libvirt", "data", "cache"):
        (home / name).mkdir(parents=True)
    (home / "config/libvirt/qemu.conf").write_text('stdio_handler = "file"\nsecurity_driver = "none"\n')
    (home / "config/libvirt/libvirtd.conf").write_text(f'unix_sock_dir = "{home}/run/libvirt"\n')
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    folders = {
        "XDG_RUNTIME_DIR": "run",
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "data",
        "XDG_CACHE_HOME": "cache",
    }
    environment = {"HOME": str(home), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    environment |= {name: str(home / folder) for name, folder in folders.items()}
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "libvirtd"]
    command += ["-f", str(home / "config/libvirt/libvirtd.conf"), "-p", str(home / "run/libvirtd.pid")]
    with (home / "libvirt.log").open("wb") as log:
        processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    address = f"qemu:///session?socket={home}/run/libvirt/libvirt-sock"
    _wait(lambda: subprocess.run(["virsh", "-c", address, "list"], check=False, capture_output=True).returncode == 0)
    return address


def _start_emulator(root: Path, home: Path, address: str, port: int, processes: list[subprocess.Popen[bytes]]) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(root / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(home / "key.pem")
    issued.cert_chain_pems[0].write_to_path(home / "cert.pem")
    emulator = Path(shutil.which("sushy-emulator") or "")
    make_hash = f"import bcrypt; print(bcrypt.hashpw({PASSWORD.encode()!r}, bcrypt.gensalt(4)).decode())"
    digest = subprocess.check_output([emulator.with_name("python"), "-c", make_hash], text=True)
    (home / "users").write_text(f"{USER}:{digest}")
    (home / "state").mkdir()
    settings = {
        "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1",
        "SUSHY_EMULATOR_LISTEN_PORT": port,
        "SUSHY_EMULATOR_SSL_CERT": str(home / "cert.pem"),
        "SUSHY_EMULATOR_SSL_KEY": str(home / "key.pem"),
        "SUSHY_EMULATOR_AUTH_FILE": str(home / "users"),
        "SUSHY_EMULATOR_LIBVIRT_URI": address,
        "SUSHY_EMULATOR_IGNORE_BOOT_DEVICE": False,
        "SUSHY_EMULATOR_STATE_DIR": str(home / "state"),
    }
    (home / "emulator.conf").write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()))
    with (home / "emulator.log").open("wb") as log:
        command = [str(emulator), "--config", str(home / "emulator.conf")]
        processes.append(subprocess.Popen(command, stdout=log, stderr=log))
    url, authority_file = f"https://127.0.0.1:{port}/redfish/v1/", str(root / "ca.pem")

    def answers() -> bool:
        try:
            return requests.get(url, verify=authority_file, timeout=10).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    _wait(answers)


def _wait(holds) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.2)
