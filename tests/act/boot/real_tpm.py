"""A real TPM for tests: swtpm, and tpm2-tools that speak to it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.reserved_ports import reserve_neighbours


class RealTpm(NamedTuple):
    """A TPM that listens on `port`; `folder` has its state and the files of the tools."""

    folder: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "TPM2TOOLS_TCTI": f"swtpm:host=127.0.0.1,port={self.port}"}

    def run(self, *words: str) -> None:
        for command in (words, ("tpm2_flushcontext", "-t")):  # a TPM holds three objects at once
            subprocess.run(command, cwd=self.folder, env=self.environment, check=True, capture_output=True, timeout=60)

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


@contextmanager
def run_tpm(folder: Path) -> Iterator[RealTpm]:
    """Run a new TPM while the block lasts."""
    if not (shutil.which("swtpm") and shutil.which("tpm2_quote")):
        pytest.skip("swtpm or tpm2-tools is not installed: make system")
    tpm = RealTpm(folder, reserve_neighbours())
    (folder / "state").mkdir(parents=True)
    command = ["swtpm", "socket", "--tpm2", "--tpmstate", "dir=state", "--flags", "not-need-init,startup-clear"]
    command += ["--server", f"type=tcp,port={tpm.port}", "--ctrl", f"type=tcp,port={tpm.port + 1}"]
    process = subprocess.Popen(command, cwd=folder)
    try:
        wait_for_port(tpm.port + 1)
        yield tpm
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def wait_for_port(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
