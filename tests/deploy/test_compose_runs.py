"""deploy/compose.yaml, started by the real podman-compose and Podman, with every output on that the docs promise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.deployed_fleet import (
    find_lacks,
    list_mail_server_words,
    make_fleet,
    write_certificates,
    write_environment,
)
from tests.deploy.real_podman import IMAGES, UID, RealPodman, needs_podman
from tests.support.places import ROOT

pytestmark = [pytest.mark.slow(minutes=2), needs_podman]
HOST = "host.containers.internal"
"""This machine, as Podman's containers know it."""
WRITABLE = (".assay", "reports", ".git/objects", ".git/refs/notes", ".git/logs/refs/notes")
"""What belongs to the user of the images in a clone of hers (docs/install.md)."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPodman]:
    engine = RealPodman(tmp_path_factory.mktemp("podman"))
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(engine.folder)


@pytest.fixture(scope="module")
def clone(engine: RealPodman) -> Iterator[Path]:
    """Start compose in a clone, as docs/install.md says."""
    clone, secrets, outputs = (engine.folder / name for name in ("clone", "secrets", "outputs"))
    make_fleet(engine.folder / "fleet", bundle := engine.folder / "fleet.bundle")
    engine.do("git", "clone", "--quiet", bundle, clone)
    for folder in (*(clone / name for name in WRITABLE), secrets, outputs):
        folder.mkdir(parents=True, exist_ok=True)
    write_certificates(secrets, HOST, "127.0.0.1")
    write_environment(secrets / "env", HOST, "/etc/assay/ca.pem")
    for folder in (*(clone / name for name in WRITABLE), secrets, outputs):
        give(folder)
    shutil.copy(ROOT / "deploy/compose.yaml", clone)  # podman-compose knows no --project-directory
    variables = {
        "ASSAY_CONTROLLER_IMAGE": IMAGES["controller"],
        "ASSAY_SERVE_IMAGE": IMAGES["serve"],
        "ASSAY_SECRETS": secrets,
        "ASSAY_OUTPUTS": outputs,
    }
    (clone / ".env").write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
    mail = engine.enter(sys.executable, *list_mail_server_words(str(secrets), str(engine.folder / "mail")))
    with subprocess.Popen(mail) as server:
        try:
            engine.do("podman-compose", "up", "--detach", cwd=clone)
            yield clone
        finally:
            server.kill()


def give(folder: Path) -> None:
    """Make the user of the images the owner of a folder, and of what is in it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, UID, UID)


def test_seals_tickets_and_mail_leave_the_closed_container(engine: RealPodman, clone: Path) -> None:
    outputs, mailbox = engine.folder / "outputs", engine.folder / "mail"

    def is_all_there() -> bool:
        notes = engine.do("git", "-c", "safe.directory=*", "for-each-ref", "refs/notes", cwd=clone)
        return not find_lacks(outputs / "fleet.seals", outputs / "tickets", mailbox, notes)

    engine.wait_for("output of each kind", is_all_there)


def test_each_container_is_healthy_and_closed(engine: RealPodman, clone: Path) -> None:
    names = engine.do("podman", "ps", "--format={{.Names}}").split()
    assert len(names) == 2
    for name in names:
        engine.wait_for(
            f"health of {name}", lambda name=name: not engine.run("podman", "healthcheck", "run", name).returncode
        )
        for folder in ("/", "/fleet", "/fleet/specs", "/fleet/.git", "/opt/assay"):
            done = engine.run("podman", "exec", name, "touch", f"{folder}/x")
            assert "Read-only file system" in done.stderr, folder
