"""The real cloud-init finds a node's data by the kernel's arguments that the node gets, and applies it.

It runs in a namespace over a copy of this machine that goes away: Debian 12's own, and the newest of `.cloud-init` with
the configuration that its images of Debian, Ubuntu and Rocky have. A stateless node starts with no trace of an earlier
start; an installed one starts again on the same disk.
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
from tests.support.places import ROOT

COPY = """\
set -e
mount -t tmpfs t {home}/over && mkdir {home}/over/up {home}/over/work {home}/over/m
root={home}/over/m
mount -t overlay overlay -o lowerdir=/,upperdir={home}/over/up,workdir={home}/over/work $root
"""
SCRIPT = """\
ip link set lo up && hostname before
/usr/bin/python3 -m http.server --bind 127.0.0.1 --directory {home}/served 18080 2>{home}/requests &
trap "kill $!" EXIT
mount -t proc proc $root/proc && mount -t sysfs sysfs $root/sys && mount --rbind /dev $root/dev
mount -t tmpfs t $root/tmp
rm -rf $root/var/lib/cloud $root/etc/cloud/cloud.cfg.d/* $root/etc/localtime
cp {home}/cloud.cfg $root/etc/cloud/cloud.cfg
cp {home}/changed.cfg $root/etc/cloud/cloud.cfg.d/99.cfg
for number in $(seq 100); do (: </dev/tcp/127.0.0.1/18080) 2>/dev/null && break; sleep 0.1; done
for start in first second; do
  mount -t tmpfs t $root/run
  export DEBUG_PROC_CMDLINE="$(cat {home}/$start.cmdline)"
  chroot $root {program} init --local >{home}/$start.log 2>&1
  chroot $root {program} init >>{home}/$start.log 2>&1
  chroot $root {program} modules --mode=config >>{home}/$start.log 2>&1
  mkdir {home}/$start && hostname >{home}/$start/hostname
  cp $root/etc/shadow $root/etc/motd $root/etc/assay/joins.json {home}/$start
  cp $root/home/ops/.ssh/authorized_keys $root/var/lib/cloud/data/instance-id {home}/$start
  cp $root/var/lib/cloud/instances/$(cat $root/var/lib/cloud/data/instance-id)/scripts/runcmd {home}/$start
  cp $root/var/lib/cloud/data/status.json {home}/$start
  echo "of the start before" >$root/etc/motd
  umount $root/run
done
"""
CHANGED: dict[str, Any] = {
    "datasource_list": ["NoCloud"],
    "network": {"config": "disabled"},
    "cloud_init_modules": ["write_files", "set_hostname", "users_groups"],
    "cloud_config_modules": ["timezone", "runcmd"],
    "cloud_final_modules": [],
}
"""What all images have in common here: the modules that need no network, no package and no disk of their own."""
NEWEST, SOURCE = ROOT / ".cloud-init", "https://github.com/canonical/cloud-init"
UNSHARE = ["unshare", "-m", "-u", "-n", "-p", "-f", "--propagation", "private"]
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def run(script: str) -> subprocess.CompletedProcess[str]:
    command = [*UNSHARE, "bash", "-c", script]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=ENVIRONMENT)


def find_obstacle(home: Path, image: str) -> str:
    if not shutil.which("cloud-init"):
        return "cloud-init is not installed: make system"
    if image != "installed" and not (NEWEST / "cloudinit").is_dir():
        return f"the newest cloud-init is not here: git clone --depth 1 {SOURCE} .cloud-init"
    if run(COPY.format(home=home)).returncode:
        return "no namespace with a copy of this machine is allowed here; it needs root"
    return ""


def make_program(home: Path, image: str) -> str:
    """Return the command of cloud-init for an image; write the configuration that this image has."""
    if image == "installed":
        (home / "cloud.cfg").write_text(json.dumps({"system_info": {"distro": "debian"}}))
        return "cloud-init"
    render = ["/usr/bin/python3", NEWEST / "tools/render-template", "--variant", image, "--prefix", "/usr"]
    subprocess.run([*render, NEWEST / "config/cloud.cfg.tmpl", home / "cloud.cfg"], check=True)
    return f"env PYTHONPATH={NEWEST} /usr/bin/python3 -m cloudinit.cmd.main"


@pytest.mark.parametrize(
    ("image", "version", "source"),
    [
        ("installed", "", "nocloud-net"),
        pytest.param("debian", "23.2", "nocloud", marks=pytest.mark.slow),
        pytest.param("ubuntu", "25.2", "nocloud", marks=pytest.mark.slow),
        pytest.param("rocky", "24.4", "nocloud", marks=pytest.mark.slow),
        pytest.param("ubuntu", "", "nocloud-net", marks=pytest.mark.slow),
    ],
)
def test_a_node_takes_its_user_files_and_units(tmp_path: Path, image: str, version: str, source: str) -> None:
    (tmp_path / "over").mkdir()
    if obstacle := find_obstacle(tmp_path, image):
        pytest.skip(obstacle)
    declared = {name: value for name, value in EVERYTHING.items() if name != "packages"}
    boots = {"first": make_boot(**declared), "second": replace(make_boot(**declared), attempt="8e" * 8)}
    for start, boot in boots.items():
        order = replace(make_order(cloud_init=version), url="http://127.0.0.1:18080", attempt=boot.attempt)
        assert f"ds={source};s=" in " ".join(order.arguments)
        served = tmp_path / "served" / BOOT_PATH.strip("/") / "data" / boot.attempt
        served.mkdir(parents=True)
        for name, text in render_node_data(boot).items():
            (served / name).write_text(text)
        (tmp_path / f"{start}.cmdline").write_text(" ".join(order.arguments))
    (tmp_path / "changed.cfg").write_text(json.dumps(CHANGED))
    ran = run((COPY + SCRIPT).format(home=tmp_path, program=make_program(tmp_path, image)))
    logs = "".join(path.read_text() for path in sorted(tmp_path.glob("*.log")))
    assert ran.returncode == 0, ran.stdout + ran.stderr + logs
    for start, boot in boots.items():
        got = {path.name: path.read_text() for path in (tmp_path / start).iterdir()}
        status = json.loads(got["status.json"])["v1"]
        assert status["datasource"].startswith("DataSourceNoCloud"), logs
        assert [status[stage]["errors"] for stage in ("init", "modules-config")] == [[], []], logs
        assert got["instance-id"].strip() == boot.attempt
        assert got["hostname"].strip() == "n1"
        assert KEY in got["authorized_keys"]
        assert "\nops:!" in got["shadow"], "nobody logs in by password"
        assert got["motd"] == "hello\n", "an installed node gets its files at each start"
        assert json.loads(got["joins.json"])["attempt"] == boot.attempt
        assert "'systemctl' 'enable' '--now' 'assay-agent.service'" in got["runcmd"]
