"""Runs a command on a virtual node as ssh would: `python -m assay.lab.node.shell LABDIR NODE COMMAND…`.

A node that is off or booting is unreachable (exit code 255, as with ssh). With the fault `probe.hangs` it never
answers. The command sees the node's root as $ASSAY_ROOT, the node's NVML and its tools. It changes plain files of that
root, where a real kernel would take a value at once: the next command first takes them into the state of the node, so
the lab's faults, a later rendering and the probe agree.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Container, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from assay.lab.node.host_files import kernel_start_time
from assay.lab.node.stub import REPLAYED_NOTICE, build_stub
from assay.lab.tools.command_lines import write_form_check
from assay.lab.virtual_node_state import VirtualNodeState
from assay.lab.world import LabWorld

SSH_FAILED = 255
NOWHERE = "255.255.255.255"
"""Instead of the BMC's address, which all nodes of a lab could reach: nothing is sent there, and nothing answers."""
NO_COMMAND = 127
TRANSPARENT = "sys/kernel/mm/transparent_hugepage/enabled"
HUGE_PAGE_POOLS = "sys/kernel/mm/hugepages"
GOVERNORS = "sys/devices/system/cpu/cpufreq"

SOURCES = Path(__file__).parents[3]
PYTHON = f'PYTHONPATH="{SOURCES}" exec "{sys.executable}"'
TOOLS = (
    *("all_reduce_perf", "dcgmi", "dcgmproftester13", "fio", "gpu-fryer", "gpu_burn", "ib_write_bw", "nvbandwidth"),
    *("nvidia-bug-report.sh", "nvidia-smi", "stress-ng", "stressapptest", "ubergemm"),
)
"""Those that run without site packages (`-S`)."""
OF_NVIDIA = frozenset(TOOLS) - {"fio", "ib_write_bw", "stress-ng", "stressapptest"} | {"nv-fabricmanager", "modinfo"}
"""The tools that a node without NVIDIA's driver lacks."""
SHELL_LAST_ARGUMENT = 'for last in "$@"; do :; done\n'
FILE_PRINTERS = {  # every probe calls them, so they only print a file of the node's root
    "df": '"$ASSAY_ROOT/run/df${last#"$ASSAY_ROOT"}.txt"',
    "nv-fabricmanager": '"$ASSAY_ROOT/run/nv-fabricmanager"',
    "tpm2_getcap": '"$ASSAY_ROOT/run/tpm"',
}
SYSTEMCTL = """\
units="$ASSAY_ROOT/run/systemctl"
own="$ASSAY_ROOT/etc/systemd/system"
[ "$1" = list-units ] && exec cat "$units"
if [ "$1" = daemon-reload ]; then
  for file in "$own"/*.d/*.conf; do
    [ -f "$file" ] || continue
    folder=${file%/*}
    unit=${folder##*/}
    mkdir -p "$ASSAY_ROOT/run/unit-settings"
    { echo LoadState=loaded; grep = "$file"; } > "$ASSAY_ROOT/run/unit-settings/${unit%.d}"
  done
  exit 0
fi
[ "$1" = try-restart ] && exit 0
if [ "$1 $2" = "show --no-pager" ]; then
  shift 3
  for unit; do cat "$ASSAY_ROOT/run/unit-settings/$unit" 2>/dev/null || echo LoadState=not-found; echo; done
  exit 0
fi
line=$(grep "^$2.service loaded " "$units")
[ -n "$line" ] || [ ! -f "$own/$2.service" ] || line="$2.service loaded inactive dead $2"
[ -n "$line" ] || { echo "Unit $2.service not found." >&2; exit 4; }
case "$1" in
show) set -- $line; printf 'Id=%s\\nLoadState=%s\\nActiveState=%s\\n' "$1" "$2" "$3" ;;
is-active) set -- $line; echo "$3"; [ "$3" = active ] ;;
is-enabled) [ ! -f "$own/$2.service" ] || [ -f "$own/$2.enabled" ] || { echo disabled; exit 1; }; echo enabled ;;
enable) : > "$own/$2.enabled" ;;
start) sed -i "s/^$2.service loaded .*/$2.service loaded active running $2/" "$units" ;;
stop) sed -i "s/^$2.service loaded .*/$2.service loaded inactive dead $2/" "$units" ;;
esac
"""
CHRONYC = """\
case "$*" in
"reload sources")
  cat "$ASSAY_ROOT"/etc/chrony/sources.d/*.sources | while read -r word name _; do
    [ "$word" != server ] || grep -q ",$name," "$ASSAY_ROOT/run/chronyc-sources" ||
      echo "^,+,$name,2,6,377,35,-0.000012,-0.000012,0.000345" >> "$ASSAY_ROOT/run/chronyc-sources"
  done ;;
*sources) exec cat "$ASSAY_ROOT/run/chronyc-sources" ;;
*) exec cat "$ASSAY_ROOT/run/chronyc" ;;
esac
"""
MODPROBE = """\
for name; do
  [ "$name" = -a ] || echo "$name 4096 0 - Live 0x0000000000000000" >> "$ASSAY_ROOT/proc/modules"
done
"""
APT_GET = """\
for name; do
  case "$name" in
  linux-image-*) : > "$ASSAY_ROOT/boot/vmlinuz-${name#linux-image-}" ;;
  nvidia-fabricmanager-*=*) echo "Fabric Manager version is : ${name#*=}" > "$ASSAY_ROOT/run/nv-fabricmanager" ;;
  esac
done
"""
MSTCONFIG = """\
table="$ASSAY_ROOT/run/mstconfig/$2"
[ -f "$table" ] || { echo "-E- Failed to open the device"; exit 3; }
shift 4
[ $# -gt 0 ] || exec cat "$table"
for name; do
  grep -q " $name " "$table" || { echo "-E- The Device doesn't support $name parameter"; exit 3; }
done
exec cat "$table"
"""
NVME = f"""\
[ "$1" != sanitize-log ] || {PYTHON} -S -m assay.lab.tools nvme "$@"
{SHELL_LAST_ARGUMENT}exec cat "$ASSAY_ROOT/run/$1/${{last##*/}}"
"""
MDADM = """\
rm -r "$ASSAY_ROOT"/sys/class/block/*/holders/"${2##*/}"
"""
UMOUNT = """\
grep -v " $1 " "$ASSAY_ROOT/proc/mounts" > "$ASSAY_ROOT/proc/mounts.left"
mv "$ASSAY_ROOT/proc/mounts.left" "$ASSAY_ROOT/proc/mounts"
"""
SCRIPTS = {  # what the roles of playbooks/ call; and the battery, which needs site packages (numpy)
    "amd-smi": 'exec cat "$ASSAY_ROOT/run/amd-smi/$1"\n',
    "apt-get": APT_GET,
    "assay-load": f'{PYTHON} -m assay.lab.tools.assay_load "$@"\n',
    "chronyc": CHRONYC,
    "dcb": f'{SHELL_LAST_ARGUMENT}case "$*" in *" pfc "*) kind=pfc ;; *) kind=app ;; esac\n'
    'exec cat "$ASSAY_ROOT/run/dcb/$kind/$last"\n',
    "ethtool": 'exec cat "$ASSAY_ROOT/run/ethtool/$2"\n',
    "mdadm": MDADM,
    "modinfo": 'exec cat "$ASSAY_ROOT/sys/module/nvidia/version"\n',
    "modprobe": MODPROBE,
    "mstconfig": MSTCONFIG,
    "nvme": NVME,
    "smartctl": '[ "$1" != --scan ] || exec cat "$ASSAY_ROOT/run/smartctl/scan"\n'
    f'{SHELL_LAST_ARGUMENT}exec cat "$ASSAY_ROOT/run/smartctl/${{last##*/}}"\n',
    "systemctl": SYSTEMCTL,
    "umount": UMOUNT,
    "update-initramfs": f'{PYTHON} -m assay.lab.tools update-initramfs "$@"\n',
    "update-grub": f'{PYTHON} -m assay.lab.tools update-grub "$@"\n',
}
OTHER_FORMS = {name: f'{PYTHON} -m assay.lab.tools {name} "$@"' for name in ("mstconfig", "nvme")}
"""What Python answers where the shell does not."""

WrittenValue = tuple[VirtualNodeState, str, str | int | list[str]]
"""A part of the state, its key, and the value that the node has now."""


def main() -> None:
    """Replace this process by the command on the node, or fail as ssh does."""
    if len(sys.argv) < 4:
        sys.exit("usage: python -m assay.lab.node.shell LABDIR NODE COMMAND…")
    lab, node, *words = sys.argv[1:]
    world = LabWorld(Path(lab).resolve())
    if not (world.folder(node) / "state.json").exists():
        _ssh_fails(f"ssh: Could not resolve hostname {node}: Name or service not known")
    state = world.load(node)
    now = world.clock().now()
    if not is_reachable(state, now):
        _ssh_fails(f"ssh: connect to host {node} port 22: No route to host")
    while state["fails"]["probe_hangs"]:
        signal.pause()
    command = shlex.split(words[0]) if len(words) == 1 else words  # ssh, too, sends one line to a shell
    if command[0] == "python3":
        command = [sys.executable, *command[1:]]
    _run(world, absorb_written_values(world, node, state), now, command)


def is_reachable(state: VirtualNodeState, now: datetime) -> bool:
    """Return whether the node's operating system answers at `now`."""
    return state["power"]["state"] == "On" and now >= datetime.fromisoformat(state["boot"]["ready_at"])


def _ssh_fails(message: str) -> NoReturn:
    sys.stderr.write(f"{message}\n")
    sys.exit(SSH_FAILED)


def _run(world: LabWorld, state: VirtualNodeState, now: datetime, command: list[str]) -> NoReturn:
    folder = world.folder(state["name"])
    write_uptime(folder, state, now)
    has_nvidia = bool(state["driver"])
    library = build_stub(world.home / "lib") if has_nvidia else None
    environment = {**os.environ, **_environment(world, folder, now, library, has_nvidia=has_nvidia)}
    # The probe is installed on the node, or comes through standard input.
    is_probe = command[1:3] == ["-m", "assay.node.probe"] or command[1:4] == ["-I", "-S", "-"]
    if is_probe:
        command = [*command, "--root", str(folder / "root"), "--at", now.isoformat()]
    if is_probe and "--reach" in command and not state["box"].get("reachable"):
        place = command.index("--reach") + 1
        command[place] = f"{NOWHERE}/{command[place].rpartition('/')[2]}"
    if command[1:3] == ["-m", "assay.node.agent"]:
        command = [*command, "--root", str(folder / "root")]
    if is_probe and "--burn-in" in command:
        command = [*command, "--clock", str(world.home / "clock.json")]
    if library is None and is_probe and has_nvidia:
        _run_probe_with_replayed_nvml(command, environment, state)
    _exec_command(command, environment)


def _exec_command(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the command, so that a signal to the process reaches the command."""
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 — no shell, words stay as they are
    except OSError:
        sys.stderr.write(f"{command[0]}: command not found\n")
        sys.exit(NO_COMMAND)


def write_uptime(folder: Path, state: VirtualNodeState, now: datetime) -> None:
    """Write the node's `/proc/uptime` as of `now`."""
    up_s = (now - kernel_start_time(state)).total_seconds()
    scratch = folder / f".uptime.{os.getpid()}"
    scratch.write_text(f"{up_s:.2f} {up_s:.2f}\n")
    scratch.replace(folder / "root/proc/uptime")


def _environment(
    world: LabWorld, folder: Path, now: datetime, library: Path | None, *, has_nvidia: bool = True
) -> Mapping[str, str]:
    tools = install_tools(
        world.home / ("tools" if has_nvidia else "host-tools"), ("amd-smi",) if has_nvidia else OF_NVIDIA
    )
    return {
        "ASSAY_ROOT": str(folder / "root"),
        "ASSAY_AT": now.isoformat(),
        "ASSAY_LAB_STATE": str(folder / "state.json"),
        "NVML_STUB": str(folder / "nvml.json"),
        "LD_LIBRARY_PATH": str(library.parent) if library else "",
        "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


def _run_probe_with_replayed_nvml(
    command: list[str], environment: Mapping[str, str], state: VirtualNodeState
) -> NoReturn:
    """Run the probe, which finds no driver, and add what it would have read through NVML."""
    from assay.lab.node.replayed_nvml import read_replayed_gpus

    sys.stderr.write(f"{REPLAYED_NOTICE}\n")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    progress, _, last_line = done.stdout.rstrip(b"\n").rpartition(b"\n")  # a load tells lines before the document
    try:
        document = json.loads(last_line)
    except ValueError:
        sys.stdout.buffer.write(done.stdout)
    else:
        sys.stdout.write(progress.decode() + "\n" if progress else "")
        for channel in {"before", "probe"} & document.keys():
            if "gpu" in document[channel]:  # a probe may be asked for other areas only
                document[channel]["gpu"] = read_replayed_gpus(state, Path(environment["ASSAY_ROOT"]))
        sys.stdout.write(json.dumps(document) + "\n")
    sys.exit(done.returncode)


def install_tools(folder: Path, lacking: Container[str] = ()) -> Path:
    """Write an executable for every tool that is not `lacking` into `folder`, and return `folder`.

    The tools run with this Python but without its site packages (`-S`), which halves their start-up time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in _scripts().items():
        launcher = folder / name
        if name in lacking:
            continue
        if launcher.exists() and launcher.read_text() == script:
            continue
        scratch = folder / f".{name}.{os.getpid()}"
        scratch.write_text(script)
        scratch.chmod(0o755)
        scratch.replace(launcher)
    return folder


def _scripts() -> dict[str, str]:
    scripts = dict(SCRIPTS)
    for tool in TOOLS:
        scripts[tool] = f'{PYTHON} -S -m assay.lab.tools {tool} "$@"\n'
    for name, file in FILE_PRINTERS.items():
        scripts[name] = f"{SHELL_LAST_ARGUMENT}exec cat {file}\n"
    checks = {name: write_form_check(name, otherwise=OTHER_FORMS.get(name, "")) for name in scripts}
    return {name: f"#!/bin/sh\n{checks[name]}{script}" for name, script in scripts.items()}


def absorb_written_values(world: LabWorld, node: str, state: VirtualNodeState) -> VirtualNodeState:
    """Return the node's state with the values that its files have now, and store it if that changes it."""
    if not _absorb(world.folder(node) / "root", state):
        return state
    with world.change(node) as locked:
        _absorb(world.folder(node) / "root", locked)
    return world.load(node)


def _absorb(root: Path, state: VirtualNodeState) -> bool:
    """Change `state` in place to what the files say. Return whether that changed it."""
    host = state["host"]
    changed = False
    for part, key, text in _list_written(root, state):
        if part.get(key) != text:
            part[key] = text
            changed = True
    names = [line.split()[0] for line in _read(root / "proc/modules").splitlines() if line.strip()]
    if names and sorted(names) != sorted(host["modules"]):
        host["modules"] = sorted(set(names))
        changed = True
    return changed


def _list_written(root: Path, state: VirtualNodeState) -> Iterator[WrittenValue]:
    """Yield the part of the state, its key, and the value in the file."""
    host = state["host"]
    yield from _list_huge_pages(root, host)
    for name in host["sysctls"]:
        if text := _read(root / "proc/sys" / name.replace(".", "/")):
            yield host["sysctls"], name, text
    for path in (root / GOVERNORS).glob("policy*/scaling_governor"):
        yield host, "governor", _read(path)
    for line in _read(root / "run/systemctl").splitlines():
        unit, _, active, *_ = line.split()
        if (name := unit.removesuffix(".service")) in host["services"]:
            yield host["services"], name, active
    yield from _list_installed(root, host)
    yield from _list_service_settings(root, host)
    for nic in state["nics"]:
        if (text := _read(root / "sys/class/net" / nic["name"] / "mtu")).isdecimal():
            yield nic, "mtu", int(text)


def _list_huge_pages(root: Path, host: VirtualNodeState) -> Iterator[WrittenValue]:
    """Yield when the kernel uses transparent huge pages, and how many others it reserves."""
    if (text := _read(root / TRANSPARENT)) and "[" not in text:
        yield host, "transparent_hugepages", text
    for size in host.get("hugepages", {}):
        if (text := _read(root / HUGE_PAGE_POOLS / f"hugepages-{size}/nr_hugepages")).isdecimal():
            yield host["hugepages"], size, int(text)


def _list_service_settings(root: Path, host: VirtualNodeState) -> Iterator[WrittenValue]:
    """Yield the settings of units that systemd has loaded, and the servers that chrony uses."""
    for unit, settings in host.get("unit_settings", {}).items():
        lines = _read(root / "run/unit-settings" / unit).splitlines()[1:]
        values = {name: text for name, _, text in (line.partition("=") for line in lines)}  # the last of a name counts
        for name, text in values.items():
            yield settings, name, text
    if rows := _read(root / "run/chronyc-sources").splitlines():
        yield host["clock"], "sources", [row.split(",")[2] for row in rows]


def _list_installed(root: Path, host: VirtualNodeState) -> Iterator[WrittenValue]:
    """Yield what packages and roles wrote to the disk."""
    if text := _read(root / "run/nv-fabricmanager"):
        yield host, "fabric_manager", text.split()[-1]
    for path in host.get("files", {}):
        yield host["files"], path, _read_whole(root / path.lstrip("/"))


def _read(path: Path) -> str:
    return _read_whole(path).strip()


def _read_whole(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
