"""The images as the recipe builds them on a base made here, started without root, network or a root to write to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.places import ROOT

TOOLS = {"buildah": "buildah", "umoci": "umoci", "skopeo": "skopeo", "mmdebstrap": "mmdebstrap", "bwrap": "bubblewrap"}
MISSING = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
TARGETS = ("controller", "serve", "agent", "checks", "load")
LOCKS = ("dist/release/requirements.txt", "requirements-load.lock")
MANUALS = ("man", "locale", "doc")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"apt-get install --no-install-recommends {' '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the base is made by root: run it as root"),
]


def run(*words: object, **variables: str) -> str:
    """Run a program to its end and return what it printed."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, f"{words[0]}: {done.stderr[-3000:]}"
    return done.stdout


def download_wheels(folder: Path) -> None:
    """Put all wheels that the images need into a folder: in a build, pip sees nothing else."""
    for lock in LOCKS:
        words = ("--quiet", "--require-hashes", "--only-binary", ":all:", "--python-version", "3.11")
        here = ("--find-links", "dist/release/packages", "--dest", folder, "--requirement", lock)
        run(ROOT / ".venv" / "bin" / "python", "-m", "pip", "download", *words, *here)


def make_base(folder: Path, variables: Mapping[str, str]) -> str:
    """Make an image of Debian with Python and pip. Returns its name, by its digest."""
    archive = folder / "base.tar"
    without = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in MANUALS]
    packages = "--include=python3,python3-venv,python3-pip,ca-certificates"
    run("mmdebstrap", "--quiet", "--variant=apt", "--mode=root", packages, *without, "bookworm", archive, **variables)
    container = run("buildah", "from", "scratch", **variables).strip()
    run("buildah", "add", "--quiet", container, archive, "/", **variables)
    run("buildah", "commit", "--quiet", "--rm", container, "localhost/base", **variables)
    archive.unlink()
    digest = run("buildah", "images", "--format", "{{.Digest}}", "localhost/base", **variables).strip()
    return f"localhost/base@{digest}"


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build all images as docs/install.md says, the load's without CUDA's libraries, which have gigabytes."""
    folder = Path("/var/tmp") / tmp_path_factory.mktemp("images").name  # gigabytes: not into memory
    (wheels := folder / "wheels").mkdir(parents=True)
    (folder / "tmp").mkdir()
    (folder / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n'
    )
    mounts = f"--volume {wheels}:/wheels:ro --volume {folder}/pip.conf:/etc/pip.conf:ro"
    variables = {
        "TMPDIR": str(folder / "tmp"),
        "STORAGE_DRIVER": "vfs",
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "BUILDAH_ISOLATION": "chroot",
        "BUILDAH_OPTIONS": f"--network host --build-arg CUDA= {mounts}",
    }
    try:
        run("make", "--silent", "packages", "agent", "load-tool")
        download_wheels(wheels)
        shutil.rmtree(ROOT / "dist" / "images", ignore_errors=True)
        built = run(ROOT / "tools" / "images", make_base(folder, variables), *TARGETS, **variables)
        assert [line for line in built.splitlines() if line.startswith("dist/")] == [
            f"dist/images:{target}" for target in TARGETS
        ]
        shutil.rmtree(folder / "store")
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def roots(layout: Path) -> Mapping[str, Path]:
    """Return the files of each image, unpacked."""
    for target in TARGETS:
        run("umoci", "unpack", "--image", f"dist/images:{target}", layout / target)
    return {target: layout / target / "rootfs" for target in TARGETS}


def start(root: Path, *words: object, fleet: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program of an image: another user than root, no network, a root that it cannot write to."""
    mounts = ("--ro-bind", fleet, "/fleet", "--tmpfs", "/fleet/.assay", "--chdir", "/fleet") if fleet else ()
    command = (
        *("bwrap", "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *("--unshare-all", "--uid", 65532, "--gid", 65532, "--die-with-parent", "--clearenv"),
        *("--setenv", "PATH", "/opt/assay/bin:/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", "/tmp"),
        *mounts,
        *words,
    )
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_is_built_for_a_user_without_rights(layout: Path, target: str) -> None:
    config = json.loads(run("skopeo", "inspect", "--config", f"oci:dist/images:{target}"))["config"]
    assert config["User"] == "65532:65532"


def test_the_controller_checks_a_fleet_that_it_may_not_write_to(roots: Mapping[str, Path], tmp_path: Path) -> None:
    run(ROOT / ".venv" / "bin" / "assay", "init", fleet := tmp_path / "fleet")
    (fleet / ".assay").mkdir(exist_ok=True)
    for target in ("controller", "serve"):
        done = start(roots[target], "assay", "check", fleet=fleet)
        assert done.returncode == 0, done.stdout + done.stderr
    for tool in ("git", "ssh"):
        assert start(roots["controller"], tool, "--version" if tool == "git" else "-V").returncode == 0


def test_the_agent_starts_from_its_one_file(roots: Mapping[str, Path]) -> None:
    done = start(roots["agent"], "python3", "-I", "/assay-agent.pyz", "--help")
    assert done.returncode == 0, done.stderr
    assert "--server" in done.stdout


@pytest.mark.parametrize("tool", ["fio", "stress-ng"])
def test_the_image_for_checks_has_the_tools_of_a_load(roots: Mapping[str, Path], tool: str) -> None:
    assert start(roots["checks"], tool, "--version").returncode == 0


def test_the_image_of_the_load_runs_a_battery(roots: Mapping[str, Path]) -> None:
    done = start(roots["load"], "assay-load", "battery", "--seeds", 1, "--devices", 1, "--tests", "gemm.float32")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["run"]["engine"].startswith("jax")
