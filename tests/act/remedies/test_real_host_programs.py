"""What the roles write is read by the real programs that it is for, and what they start takes the words.

Contents and commands come from the roles themselves. A program that is not installed is a skip: tools/system-packages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from assay.act.boot.script import BootOrder, render_grub_config, render_grub_wait
from assay.act.remedies.node_wipe import DriveReading, list_release_commands
from assay.model.specs.image import Image
from assay.model.specs.node.host_settings import make_chrony_file, make_drop_ins
from tests.support.places import ROOT

ROLES = ROOT / "playbooks/collections/ansible_collections/assay/fleet/roles"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REFUSES_WORDS = re.compile(r"unrecognized option|invalid option|unknown option|not understood|usage:", re.IGNORECASE)
SETTINGS: Mapping[str, Any] = {
    "cpu_governor": "performance",
    "gpu_settings": {
        "persistence": True,
        "mig": False,
        "compute_mode": "exclusive_process",
        "application_clocks": {"memory_mhz": 2619, "graphics_mhz": 1980},
        "power_limit_w": 650,
    },
    "hugepages": {"2048kB": 16},
    "kernel_command_line": ["iommu=pt", 'dyndbg="file x.c +p"'.replace('"', "")],
    "kernel_modules": ["nvidia_peermem", "ib_umad"],
    "kernel_version": "6.8.0-45-generic",
    "module_options": {"nvidia": {"NVreg_EnableGpuFirmware": 0}, "ib_core": {"recv_queue_size": 64}},
    "nic_mtu": {"eth0": 9000},
    "sysctls": {"vm.overcommit_memory": 0, "net.ipv4.tcp_rmem": "4096 87380 16777216"},
    "transparent_hugepages": "madvise",
    "fabric_manager": "570.172.08",
    "gpu_driver": "570.172.08",
}


def need(tool: str, package: str) -> str:
    program = shutil.which(tool, path=SYSTEM_PATH)
    if not program:
        pytest.skip(f"{tool} is not installed: apt-get install {package}, or sh tools/system-packages as root")
    return program


def run(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": SYSTEM_PATH, **options.pop("env", {})}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment, **options)


def read_tasks(role: str) -> list[dict[str, Any]]:
    """Return the tasks of a role, those of its blocks too."""

    def walk(tasks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one for task in tasks for one in [task, *walk(task.get("block", [])), *walk(task.get("rescue", []))]]

    return walk(yaml.safe_load((ROLES / role / "tasks/main.yml").read_text()))


def render(role: str, template: str, root: Path | str = "") -> str:
    """Return a template of a role, as Ansible fills it with `SETTINGS`."""
    defaults = ROLES / role / "defaults/main.yml"
    variables = yaml.safe_load(defaults.read_text()) if defaults.exists() else {}
    trusted = {name: trust_as_template(text) for name, text in variables.items()}
    facts = {"declared": {"settings": dict(SETTINGS), "root": str(root), "managed": True}, **trusted}
    return str(Templar(loader=DataLoader(), variables=facts).template(trust_as_template(template)))


def write_file(role: str, root: Path) -> Path:
    """Write the file of a role's `copy` below a root, and return its path."""
    (task,) = [task for task in read_tasks(role) if "ansible.builtin.copy" in task]
    copy = task["ansible.builtin.copy"]
    path = Path(render(role, copy["dest"], root))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(role, copy["content"]))
    return path


def read_command(role: str, task_name: str) -> list[str]:
    """Return the words that a `command` of a role starts."""
    (task,) = [task for task in read_tasks(role) if task.get("name") == task_name]
    command = task["ansible.builtin.command"]
    return render(role, command["cmd"] if isinstance(command, dict) else command).split()


@pytest.mark.parametrize(
    ("role", "file", "text"),
    [
        ("cpu_governor", "sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance"),
        ("hugepages", "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "16"),
        ("transparent_hugepages", "sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
    ],
)
def test_systemd_tmpfiles_writes_what_the_file_says(role: str, file: str, text: str, tmp_path: Path) -> None:
    need("systemd-tmpfiles", "systemd")
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("")
    written = write_file(role, tmp_path)
    done = run("systemd-tmpfiles", f"--root={tmp_path}", "--create", written.name)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / file).read_text().strip() == text


def test_sysctl_reads_each_line_of_its_file(tmp_path: Path) -> None:
    need("sysctl", "procps")
    done = run("sysctl", "--dry-run", "-p", write_file("sysctls", tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name} = {value}" for name, value in SETTINGS["sysctls"].items()]


def test_modprobe_reads_the_options_of_modules(tmp_path: Path) -> None:
    need("modprobe", "kmod")
    done = run("modprobe", "-C", write_file("module_options", tmp_path).parent, "--showconfig")
    assert "options nvidia NVreg_EnableGpuFirmware=0\noptions ib_core recv_queue_size=64" in done.stdout
    assert done.stderr == ""


def test_systemd_reads_the_modules_that_it_loads(tmp_path: Path) -> None:
    """It looks for each module, and for nothing else: modules of these names are not on this machine."""
    loader = "/lib/systemd/systemd-modules-load"
    if not Path(loader).exists():
        pytest.skip("systemd is not installed: apt-get install systemd")
    done = run(loader, write_file("kernel_modules", tmp_path), env={"SYSTEMD_LOG_LEVEL": "debug"})
    assert "nvidia_peermem" in done.stderr
    assert "Failed to parse" not in done.stderr


def test_systemd_accepts_the_unit_of_gpu_settings_and_its_drop_ins(tmp_path: Path) -> None:
    need("systemd-analyze", "systemd")
    unit = write_file("gpu_settings", tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    unit.write_text(unit.read_text().replace("=nvidia-smi", "=/bin/true nvidia-smi"))  # it is not on this machine
    ((path, drop_in),) = make_drop_ins({unit.name: {"TimeoutStartSec": "90", "LimitMEMLOCK": "infinity"}}).items()
    (tmp_path / path.lstrip("/")).parent.mkdir(parents=True)
    (tmp_path / path.lstrip("/")).write_text(drop_in["content"])
    done = run("systemd-analyze", "verify", "--man=no", unit)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / path.lstrip("/")).write_text(drop_in["content"].replace("LimitMEMLOCK", "LimitMemlok"))
    assert "LimitMemlok" in run("systemd-analyze", "verify", "--man=no", unit).stderr, "it reads the drop-in"


def test_udev_accepts_the_rule_and_would_set_the_mtu(tmp_path: Path) -> None:
    need("udevadm", "udev")
    if os.geteuid() or run("unshare", "--mount", "true").returncode:
        pytest.skip("rules are read below /run, which takes a mount namespace of root")
    rules = write_file("nic_mtu", tmp_path)
    rules.write_text(rules.read_text().replace("eth0", "lo"))
    script = (
        f"mkdir -p /run/udev/rules.d && mount --bind {rules.parent} /run/udev/rules.d &&"
        " exec udevadm test --action=add /sys/class/net/lo"
    )
    done = run("unshare", "--mount", "sh", "-c", script, env={"SYSTEMD_LOG_LEVEL": "debug"})
    said = done.stdout + done.stderr
    assert "90-assay-mtu.rules" in said
    assert not [line for line in said.splitlines() if "90-assay" in line and ("nvalid" in line or "nknown" in line)]
    assert re.search(r"90-assay-mtu\.rules:\d+ ATTR .*mtu.* writing '9000'", said), said


@pytest.mark.parametrize("role", ["kernel_command_line", "kernel_version"])
def test_a_shell_reads_grubs_drop_in_as_grub_mkconfig_does(role: str, tmp_path: Path) -> None:
    """grub-mkconfig takes each file of /etc/default/grub.d into its own shell."""
    drop_in = write_file(role, tmp_path)
    script = f'set -eu; GRUB_CMDLINE_LINUX="quiet"; . {drop_in}; echo "$GRUB_CMDLINE_LINUX|${{GRUB_DEFAULT:-}}"'
    done = run("sh", "-c", script)
    entry = "Advanced options for Ubuntu>Ubuntu, with Linux 6.8.0-45-generic"
    expected = "quiet iommu=pt dyndbg=file x.c +p|" if role == "kernel_command_line" else f"quiet|{entry}"
    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_grub_reads_what_it_is_told_to_start() -> None:
    need("grub-script-check", "grub-common")
    file = {"url": "https://images.example/x", "sha256": "ab" * 32}
    declared = {"kind": "Image", "name": "gpu", "sources": ["us"], "version": "1", "kernel": file, "initrds": [file]}
    image = Image.model_validate({**declared, "arguments": ["console=ttyS0", "quiet"]})
    order = BootOrder("n0001", image, "http://boot.example:8080", "a1", ("it's=1",))
    for config in (render_grub_config(order), render_grub_wait('it\'s not yet "known" $here', 30)):
        done = run("grub-script-check", input=config)
        assert (done.returncode, done.stderr) == (0, ""), config
    assert run("grub-script-check", input="linux (http,x)/k 'a\n").returncode == 1


@pytest.mark.parametrize(
    ("role", "task", "package", "words"),
    [
        ("kernel_version", "Packages of the kernel", "apt", ["--simulate"]),
        ("gpu_driver", "Version of the driver on disk", "kmod", []),
    ],
)
def test_the_real_program_takes_the_words_of_a_role(role: str, task: str, package: str, words: list[str]) -> None:
    program, *rest = read_command(role, task)
    need(program, package)
    done = run(program, *words, *rest)
    assert not REFUSES_WORDS.search(done.stderr), done.stderr
    assert "Unable to locate package" in done.stderr or "not found" in done.stderr
    assert REFUSES_WORDS.search(run(program, *rest, "--no-such-option").stderr)


def test_the_programs_that_give_drives_free_take_the_words() -> None:
    users = (("mount", "/assay-test/nowhere"), ("holder", "md_assay_none"))
    drive = DriveReading("nvme0", "S1", "M", "pcie", (), "", "", users, {}, 0, {})
    for program, *rest in list_release_commands([drive]):
        need(program, {"umount": "mount"}.get(program, program))
        done = run(program, *rest)
        assert done.returncode != 0
        assert not REFUSES_WORDS.search(done.stderr), done.stderr


def test_chronyd_reads_the_servers(tmp_path: Path) -> None:
    need("chronyd", "chrony")
    folder = tmp_path / "sources.d"
    folder.mkdir()
    (folder / "90-assay.sources").write_text(make_chrony_file(["ntp1.example", "10.0.0.1"])["content"])
    settings = tmp_path / "chrony.conf"
    settings.write_text(f"sourcedir {folder}\n")
    done = run("chronyd", "-p", "-f", settings)
    assert done.returncode == 0, done.stderr
    # Servers of a folder are read later; the same lines in the settings are checked now.
    settings.write_text((folder / "90-assay.sources").read_text())
    done = run("chronyd", "-p", "-f", settings)
    assert "server ntp1.example iburst\nserver 10.0.0.1 iburst" in done.stdout
    settings.write_text((folder / "90-assay.sources").read_text().replace("iburst", "iburzt"))
    assert run("chronyd", "-p", "-f", settings).returncode != 0


def test_a_real_kernel_takes_values_and_shows_them(tmp_path: Path) -> None:
    """In a network namespace of its own: what is set there is gone with it."""
    if os.geteuid() or run("unshare", "--net", "--mount", "true").returncode:
        pytest.skip("it takes a network namespace of root")
    module = ROLES.parent / "plugins/modules/kernel_values.py"
    values = {"/proc/sys/net/ipv4/ip_forward": "1", "/sys/class/net/lo/mtu": "9000", "/proc/sys/net/no_such": "1"}
    told = []
    for names in (list(values)[:2], list(values)[:2], list(values)):
        arguments = {"ANSIBLE_MODULE_ARGS": {"values": {name: values[name] for name in names}}}
        (tmp_path / f"{len(told)}.json").write_text(json.dumps(arguments))
        told.append(f"{sys.executable} {module} < {tmp_path / f'{len(told)}.json'}; echo")
    script = "mount -t sysfs sysfs /sys; echo 0 > /proc/sys/net/ipv4/ip_forward; " + "; ".join(told)
    done = run("unshare", "--net", "--mount", "sh", "-c", script)
    first, second, third = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    assert (first["changed"], second["changed"]) == (True, False)
    assert third["failed"]
    assert "no_such" in third["msg"]
