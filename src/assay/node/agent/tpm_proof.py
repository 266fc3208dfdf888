"""Lets a node's TPM prove the machine, by tpm2-tools: it makes an attestation key, and unwraps a secret of assay."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOOLS = tuple(
    f"tpm2_{name}"
    for name in ("createek", "createak", "startauthsession", "policysecret", "activatecredential", "quote")
)
DEVICE = "dev/tpmrm0"
TCTI = "TPM2TOOLS_TCTI"
TOOL_S = 120
FLUSH = ("tpm2_flushcontext", "-t")
Ask = Callable[[str, dict[str, str], str], Any]
"""Sends a body to a route of the start, and returns a field of the answer."""


class TpmFailed(Exception):
    """The TPM gives no proof; the text says why."""


def has_tpm(root: Path) -> bool:
    """Whether this machine has a TPM and the tools for it."""
    return all(map(shutil.which, TOOLS)) and ((root / DEVICE).exists() or TCTI in os.environ)


def prove_by_tpm(ask: Ask) -> dict[str, str]:
    """Return the proof for `identity`. Raises TpmFailed where a tool fails, or what `ask` raises."""
    with tempfile.TemporaryDirectory(prefix="assay-tpm-") as folder:
        tools = _TpmTools(Path(folder))
        tools.run("tpm2_createek -c ek.ctx -G rsa -u ek.pub")
        tools.run("tpm2_createak -C ek.ctx -c ak.ctx -G rsa -g sha256 -s rsassa -u ak.pub")
        keys = {"endorsement_key": tools.read("ek.pub"), "attestation_key": tools.read("ak.pub")}
        challenge = ask("challenge", keys, "challenge")
        tools.write("credential", challenge["credential"])
        tools.run("tpm2_startauthsession --policy-session -S session")
        try:
            tools.run("tpm2_policysecret -S session -c e")
            tools.run("tpm2_activatecredential -c ak.ctx -C ek.ctx -i credential -o secret -P session:session")
        finally:
            tools.run("tpm2_flushcontext session")  # a TPM holds few sessions
        proof = {"attestation_key": keys["attestation_key"], "secret": tools.read("secret")}
        return proof | (_quote(tools, challenge["pcrs"]) if challenge["pcrs"] else {})


def _quote(tools: _TpmTools, pcrs: list[int]) -> dict[str, str]:
    """Return what the TPM signs of the registers, over the secret that it unwrapped."""
    nonce = base64.b64decode(tools.read("secret")).hex()
    tools.run(f"tpm2_quote -c ak.ctx -l sha256:{','.join(map(str, pcrs))} -q {nonce} -m quote -s signature")
    return {"quote": tools.read("quote"), "signature": tools.read("signature")}


class _TpmTools:
    """tpm2-tools in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, line: str) -> None:
        """Run a tool. Afterwards, free what it left in a TPM that holds three objects at once."""
        words = line.split()
        try:
            done = subprocess.run(words, cwd=self._folder, check=False, capture_output=True, text=True, timeout=TOOL_S)
            subprocess.run(FLUSH, cwd=self._folder, check=False, capture_output=True, timeout=TOOL_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TpmFailed(f"{words[0]}: {error}") from None
        if done.returncode:
            raise TpmFailed(f"{words[0]}: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}")

    def write(self, name: str, content: str) -> None:
        (self._folder / name).write_bytes(base64.b64decode(content))

    def read(self, name: str) -> str:
        return base64.b64encode((self._folder / name).read_bytes()).decode()
