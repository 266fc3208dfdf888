"""A real engine of containers for slow tests: Podman with storage, settings, a network and processes of its own.

Its images start as deploy/Containerfile says. They hold assay as it stands here, on the programs of this machine:
`test_built_images.py` builds the real ones.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deploy.recipe import list_configuration
from tests.support.places import ROOT

IMAGES = {target: f"localhost/assay-{target}:1" for target in ("controller", "serve", "agent")}
UID = 65532
"""The user of the images."""
TOOLS = ("podman", "podman-compose", "runc", "iptables", "unshare", "nsenter")
MISSING = [tool for tool in TOOLS if not shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
WITHIN_S = 600.0
"""How long a container may take, on a machine that others load."""
needs_podman = pytest.mark.skipif(
    bool(MISSING) or os.geteuid() != 0,
    reason=f"no {', '.join(MISSING) or 'rights of root'} here (Debian: podman podman-compose runc iptables; as root)",
)
SETTINGS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
volumes = [{volumes}]
[network]
network_config_dir = "{folder}/networks"
{plugins}
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
HOLD = """
mount --make-rprivate /
for name in /run /var/lib/cni /var/lib/containers; do
  mkdir -p "$name"
  mount -t tmpfs tmpfs "$name"
done
ip link set lo up
echo ready
exec sleep infinity
"""
"""Podman keeps states in these folders, whatever its settings say."""
STORAGE = '[storage]\ndriver = "vfs"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n'
POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'
FOLDERS = (
    "usr",
    "etc",
    "proc",
    "sys",
    "dev",
    "run",
    "var/lib/assay",
    "opt/python",
    "opt/source",
    "opt/packages",
    "fleet",
)
PYTHON = f"opt/assay/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


class RealPodman:
    """One engine, whose files lie in `folder`, in namespaces that end with it. Its network begins with a loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "HOME": str(folder / "home"),
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        }
        self._spaces: subprocess.Popen[bytes] | None = None

    def start(self, **files: bytes) -> None:
        """Make the namespaces and the images. `files`: what else lies in their root, by name."""
        (policy := self.folder / "home/.config/containers/policy.json").parent.mkdir(parents=True)
        policy.write_text(POLICY)
        self._write_settings()
        spaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        self._spaces = subprocess.Popen([*spaces, "sh", "-euc", HOLD], stdout=subprocess.PIPE)
        assert self._spaces.stdout
        assert self._spaces.stdout.readline() == b"ready\n"
        archive = self._pack(files)
        for target, image in IMAGES.items():
            configuration = [*list_configuration(target), "ENV LD_LIBRARY_PATH=/opt/python/lib"]
            changes = [f"--change={line}" for line in _split_variables(configuration)]
            self.do("podman", "import", "--quiet", *changes, archive, image)

    def stop(self) -> None:
        """End all containers, and the namespaces."""
        if self._spaces:
            self.run("podman", "rm", "--all", "--force", "--time=0")
            self._spaces.kill()
            self._spaces.wait()

    def run(self, *words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of this machine in the namespaces."""
        command = self.enter("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", cwd or self.folder, *words)
        return subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment)

    def do(self, *words: object, cwd: Path | None = None) -> str:
        """Run a program, which must succeed, and return what it printed."""
        done = self.run(*words, cwd=cwd)
        assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def enter(self, *words: object) -> list[str]:
        """Return the words of a command that works in the namespaces."""
        assert self._spaces
        holder = Path(f"/proc/{self._spaces.pid}/task/{self._spaces.pid}/children").read_text().strip()
        return ["nsenter", f"--target={holder}", "--net", "--mount", "--pid", *map(str, words)]

    def wait_for(self, what: str, is_there: Callable[[], object]) -> None:
        """Wait until it is there. Raises AssertionError, with what the containers said, if it never comes."""
        ends_at = time.monotonic() + WITHIN_S
        while not is_there():
            assert time.monotonic() < ends_at, f"no {what}: {self.describe()}"
            time.sleep(0.5)

    def describe(self) -> str:
        """Return the state of each container, and the end of what it said."""
        names = self.do("podman", "ps", "--all", "--format={{.Names}}").split()
        logs = [f"== {name}\n{self.run('podman', 'logs', '--tail=60', name)}" for name in names]
        return "\n".join([self.do("podman", "ps", "--all"), *logs])

    def _write_settings(self) -> None:
        here = {
            "/usr": "/usr",
            sys.base_prefix: "/opt/python",
            str(ROOT): "/opt/source",
            sysconfig.get_path("purelib"): "/opt/packages",
        }
        volumes = ", ".join(f'"{there}:{inside}:ro"' for there, inside in here.items())
        # Debian keeps what makes networks where Podman looks; tools that lie elsewhere say so
        plugins = os.environ.get("CNI_PATH", "")
        known = {
            "folder": self.folder,
            "plugins": f'cni_plugin_dirs = ["{plugins}"]' if plugins else "",
            "volumes": volumes,
        }
        (self.folder / "containers.conf").write_text(SETTINGS.format(**known))
        (self.folder / "storage.conf").write_text(STORAGE.format(folder=self.folder))

    def _pack(self, files: dict[str, bytes]) -> Path:
        root = self.folder / "image"
        for name in (*FOLDERS, "opt/assay/bin", PYTHON):
            (root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
        (root / "tmp").mkdir()
        (root / "tmp").chmod(0o1777)
        (root / "etc/passwd").write_text(f"assay:x:{UID}:{UID}:assay:/var/lib/assay:/usr/sbin/nologin\n")
        (root / "etc/group").write_text(f"assay:x:{UID}:\n")
        (root / PYTHON / "assay.pth").write_text("/opt/source/src\n/opt/packages\n")
        (root / "opt/assay/pyvenv.cfg").write_text("home = /opt/python/bin\n")
        for name in ("python", "python3"):
            (root / "opt/assay/bin" / name).symlink_to("/opt/python/bin/python3")
        (program := root / "opt/assay/bin/assay").write_text(
            "#!/opt/assay/bin/python3\nfrom assay.cli.app import main\nmain()\n"
        )
        program.chmod(0o755)
        for name, content in files.items():
            (root / name).write_bytes(content)
        with tarfile.open(self.folder / "image.tar", "w") as archive:
            archive.add(root, ".")
        return self.folder / "image.tar"


def _split_variables(lines: list[str]) -> list[str]:
    """Return the lines with one variable in each `ENV`: Podman's import takes no more."""
    split = []
    for line in lines:
        instruction, _, words = line.partition(" ")
        split += [f"ENV {word}" for word in shlex.split(words)] if instruction == "ENV" else [line]
    return split
