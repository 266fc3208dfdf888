"""The real cloud-init finds a node's data by the kernel's arguments that the node gets, and applies it.

It runs in a namespace over a copy of this machine that goes away.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.act.boot.cloud_init import render_node_data
from assay.act.boot.script import BOOT_PATH
from tests.act.boot.declared_boot import EVERYTHING, KEY, make_boot
from tests.act.boot.test_boot_script import make_order

COPY = """\
set -e
mount -t tmpfs t {home}/over && mkdir {home}/over/up {home}/over/work {home}/over/m
root={home}/over/m
mount -t overlay overlay -o lowerdir=/,upperdir={home}/over/up,workdir={home}/over/work $root
"""
SCRIPT = """\
ip link set lo up
/usr/bin/python3 -m http.server --bind 127.0.0.1 --directory {home}/served 18080 2>{home}/requests &
trap "kill $!" EXIT
mount -t proc proc $root/proc && mount -t sysfs sysfs $root/sys && mount --rbind /dev $root/dev
mount -t tmpfs t $root/run && mount -t tmpfs t $root/tmp
rm -rf $root/var/lib/cloud $root/etc/cloud/cloud.cfg.d/*
cp {home}/cloud.cfg $root/etc/cloud/cloud.cfg
export DEBUG_PROC_CMDLINE="$(cat {home}/cmdline)"
for number in $(seq 100); do (: </dev/tcp/127.0.0.1/18080) 2>/dev/null && break; sleep 0.1; done
chroot $root cloud-init init && chroot $root cloud-init modules --mode=config
cp $root/etc/shadow $root/etc/hostname $root/etc/motd $root/etc/assay/joins.json {home}/
cp $root/home/ops/.ssh/authorized_keys $root/var/lib/cloud/data/instance-id {home}/
cp $root/var/lib/cloud/instances/*/scripts/runcmd {home}/
"""
SETTINGS: dict[str, Any] = {
    "datasource_list": ["NoCloud"],
    "network": {"config": "disabled"},
    "cloud_init_modules": ["write-files", "set_hostname", "users-groups"],
    "cloud_config_modules": ["timezone", "runcmd"],
    "system_info": {"distro": "debian"},
}
UNSHARE = ["unshare", "-m", "-u", "-n", "-p", "-f", "--propagation", "private"]
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def run(script: str) -> subprocess.CompletedProcess[str]:
    command = [*UNSHARE, "bash", "-c", script]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=ENVIRONMENT)


def find_obstacle(home: Path) -> str:
    if not shutil.which("cloud-init"):
        return "cloud-init is not installed: make system"
    if run(COPY.format(home=home)).returncode:
        return "no namespace with a copy of this machine is allowed here; it needs root"
    return ""


def test_a_node_takes_its_user_files_and_units(tmp_path: Path) -> None:
    (tmp_path / "over").mkdir()
    if obstacle := find_obstacle(tmp_path):
        pytest.skip(obstacle)
    declared = {name: value for name, value in EVERYTHING.items() if name != "packages"}
    boot = make_boot(**declared)
    order = replace(make_order(), url="http://127.0.0.1:18080", attempt=boot.attempt)
    served = tmp_path / "served" / BOOT_PATH.strip("/") / "data" / boot.attempt
    served.mkdir(parents=True)
    for name, text in render_node_data(boot).items():
        (served / name).write_text(text)
    (tmp_path / "cmdline").write_text(" ".join(order.arguments))
    (tmp_path / "cloud.cfg").write_text(json.dumps(SETTINGS))
    ran = run((COPY + SCRIPT).format(home=tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    got = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    assert got["instance-id"].strip() == boot.attempt
    assert got["hostname"].strip() == "n1"
    assert KEY in got["authorized_keys"]
    assert "\nops:!" in got["shadow"], "nobody logs in by password"
    assert got["motd"] == "hello\n"
    assert json.loads(got["joins.json"])["attempt"] == boot.attempt
    assert "'systemctl' 'enable' '--now' 'assay-agent.service'" in got["runcmd"]
