"""The load tool in a real Podman: it starts by digest without any pull, and ends at once with whoever started it."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.model.reading import parse_reading
from assay.model.specs.node.load_tools import LoadToolSettings, SiteTraining
from assay.node.load_tools.load_delivery import LoadCommand, find_load_tool
from assay.node.load_tools.site_commands import run_site_training
from assay.node.load_tools.tool_call import LoadOrder, SiteSettings
from assay.node.probe.node_access import NodeRoot

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, ("podman", "runc", "busybox"))),
        reason="no Podman here (Debian: podman runc busybox-static)",
    ),
]
NAME = "localhost/assay-load-test"
WORD = "load-in-podman"
TOOL = f'#!/bin/sh\necho "$0 $* $SITE $(cat /data/file)"; while :; do sleep 1; done # {WORD}\n'
CONF = '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\n'


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return an image by digest: a shell, and a tool that runs without end."""
    (tmp_path / "containers.conf").write_text(CONF)
    monkeypatch.setenv("CONTAINERS_CONF", str(tmp_path / "containers.conf"))
    archive = tmp_path / "image.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(str(shutil.which("busybox")), "bin/busybox")
        for name in ("sh", "cat", "sleep"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        tool = tarfile.TarInfo("bin/assay-load")
        tool.mode, tool.size = 0o755, len(TOOL)
        tar.addfile(tool, io.BytesIO(TOOL.encode()))
    podman("import", str(archive), f"{NAME}:1")
    digest = podman("image", "inspect", "--format", "{{.Digest}}", f"{NAME}:1")
    try:
        podman("run", "--rm", "--network=host", f"{NAME}:1", "sh", "-c", ":")
        yield f"{NAME}@{digest}"
    finally:
        subprocess.run(["podman", "rmi", "--force", f"{NAME}:1"], capture_output=True, check=False)


def podman(*words: str) -> str:
    """Run Podman; skip where it cannot run a container on this machine at all."""
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=False)
    if done.returncode and "runtime" in done.stderr.lower():
        pytest.skip(f"Podman cannot run here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def declared(image: str, **more: object) -> LoadCommand:
    found = find_load_tool(NodeRoot("/nonexistent"), json.dumps({"way": "podman", "image": image, **more}))
    assert isinstance(found, LoadCommand), found
    return found


def running() -> int:
    """Return how many processes of the tool run on this machine."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            count += b"/bin/assay-load\0battery" in (folder / "cmdline").read_bytes().replace(b"podman", b"")
        except OSError:
            continue
    return count


def test_the_tool_runs_with_the_sites_variables_and_folders_and_is_gone_with_its_client(image: str, tmp_path: Path):
    (tmp_path / "file").write_text("from the node")
    tool = declared(image, environment={"SITE": "mlx5_0,mlx5_1"}, mounts=[f"{tmp_path}:/data:ro"])
    client = subprocess.Popen(
        [*tool.command, "battery", "--seconds", "5"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **tool.environment},
        start_new_session=True,
    )
    assert client.stdout is not None
    line = client.stdout.readline().decode()
    assert line.split() == [*["/bin/assay-load", "battery", "--seconds", "5", "mlx5_0,mlx5_1", "from", "the", "node"]]
    assert running()
    os.killpg(client.pid, signal.SIGKILL)
    client.wait()
    ends_at = time.monotonic() + 60
    while running() and time.monotonic() < ends_at:
        time.sleep(0.02)
    assert running() == 0, "the container outlived its client"


def test_an_image_that_the_node_does_not_have_is_absent_and_is_not_pulled(image: str):
    other = f"{NAME}@sha256:{64 * 'b'}"
    reading = parse_reading(find_load_tool(NodeRoot("/"), json.dumps({"way": "podman", "image": other})))  # type: ignore[arg-type]
    assert reading is not None
    assert (reading.kind, "a visit pulls nothing" in str(reading.reason)) == ("absent", True)


def test_the_sites_own_training_runs_in_its_container_and_a_program_that_it_lacks_is_no_training(image: str) -> None:
    steps = 'for n in 1 2 3; do echo "step $n loss 2.$n time 12$n"; done; cat /data/file'
    patterns = {"step": r"step (\d+)", "loss": r"loss (\S+)", "step_ms": r"time (\d+)"}
    fields = {name: {"pattern": pattern} for name, pattern in patterns.items()}
    training = {"command": ["sh", "-c", steps], "deadline_s": 60, "least_steps": 3, **fields}
    declared = SiteTraining.model_validate({**training, "container": {"way": "podman", "image": image}})
    site = SiteSettings.parse(LoadToolSettings(training=declared).model_dump_json(exclude_none=True, by_alias=True))
    tree = run_site_training(NodeRoot("/nonexistent"), LoadOrder(1, site=site))
    assert (tree["steps"], tree["loss"], tree["step_ms"]) == ({"value": 3}, {"value": 2.3}, {"value": 122.0})
    assert "ended with exit code 1" in tree["ended"]["failed"], "it has no mounts, so cat failed"
    gone = {**site.training, "command": ["train"]}
    tree = run_site_training(NodeRoot("/nonexistent"), LoadOrder(1, site=SiteSettings(training=gone)))
    assert tree["ended"]["failed"].startswith("0 steps, then: podman ended with exit code 127")
