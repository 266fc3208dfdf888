"""`python -m assay.node.agent.node_join`: on a node that has booted, prove which machine it is, and fetch its secrets.

Reads `/etc/assay/joins.json`, which cloud-init wrote. The proof may be by the TPM, with tpm2-tools: it makes an
attestation key, and unwraps a secret of assay. Standard library only. Exit codes: 0 all is written; 1 assay refused, or
did not answer in time; 2 the node cannot ask.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from assay.model.backoff import Backoff
from assay.model.text.safe_text import escape_line
from assay.node.agent.controller_connection import ControllerConnection, ControllerUnreachable

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
PLAN = "etc/assay/joins.json"
AUTHORITY = "etc/assay-agent/ca.pem"
BMC_NONCE = "sys/class/dmi/id/chassis_asset_tag"
RETRIES = Backoff((1.0,), factor=2.0, longest_s=30.0, jitter=0.3)
OK = 200
REFUSED_STATUSES = (400, 401, 403, 404, 422)
YEAR_OF_A_CLOCK_THAT_IS_RIGHT = 2025


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
        if challenge["pcrs"]:  # the TPM signs these registers, over the secret that it unwrapped
            registers = ",".join(map(str, challenge["pcrs"]))
            nonce = base64.b64decode(proof["secret"]).hex()
            tools.run(f"tpm2_quote -c ak.ctx -l sha256:{registers} -q {nonce} -m quote -s signature")
            proof |= {"quote": tools.read("quote"), "signature": tools.read("signature")}
        return proof


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


class JoinFailed(Exception):
    """The node gets no secrets; the text says why, and what to do."""


@dataclass(slots=True)
class NodeJoin:
    """One node's way to its secrets. `root` is the folder in place of `/`. `say` shows a line to people.

    `bearer` holds the token that `connection` shows.
    """

    root: Path
    plan: dict[str, Any]
    connection: ControllerConnection
    patience_s: float
    bearer: list[str]
    say: Callable[[str], None]

    def run(self) -> None:
        """Prove the machine, and write every secret. Raises JoinFailed."""
        tokens = self._prove()
        for purpose, token in tokens.items():
            self.bearer[:] = [token]
            secret = self._ask(f"join/{quote(purpose, safe='')}", {}, "secret")
            for path, content in list_files(purpose, self.plan["joins"].get(purpose, {}), secret):
                write_secret(self.root / path, content)
                self.say(f"wrote /{path}")

    def _prove(self) -> dict[str, str]:
        """Return the tokens for the best proof that this machine has. Raises JoinFailed with what each one met."""
        proofs = self.plan.get("proofs", ["bmc-nonce"])
        met: list[str] = []
        for proof in proofs:
            if proof == "tpm" and not has_tpm(self.root):
                met.append("tpm: this machine has no TPM, or no tpm2-tools")
                continue
            try:
                body = prove_by_tpm(self._ask) if proof == "tpm" else {"bmc_nonce": self._read_nonce()}
                tokens: dict[str, str] = self._ask("identity", body, "tokens")
            except (JoinFailed, TpmFailed) as error:
                met.append(f"{proof}: {error}")
            else:
                return tokens
        raise JoinFailed("; ".join(met))

    def _read_nonce(self) -> str:
        try:
            return (self.root / BMC_NONCE).read_text().strip()
        except OSError as error:
            raise JoinFailed(f"/{BMC_NONCE}: {error.strerror}: run as root, on the machine itself") from None

    def _ask(self, path: str, body: dict[str, str], wanted: str) -> Any:
        """Return what is `wanted` of the answer, asking until the time is over. Raises JoinFailed if it is refused."""
        path = f"/boot/v1/attempts/{quote(str(self.plan['attempt']), safe='')}/{path}"
        ends_at = time.monotonic() + self.patience_s
        failures = 0
        while True:
            failures += 1
            try:
                answer = self.connection.post(path, json.dumps(body).encode())
            except ControllerUnreachable as error:
                reason = f"{error}{explain_clock(str(error))}"
            else:
                if answer.status == OK and wanted in answer.document:
                    return answer.document[wanted]
                reason = str(answer.document.get("error", f"status {answer.status}"))
                if answer.status in REFUSED_STATUSES:
                    raise JoinFailed(f"assay refused: {reason}; the next start of the node may ask once more")
            if time.monotonic() > ends_at:
                raise JoinFailed(f"no answer in {self.patience_s:g} s: {reason}")
            self.say(f"asks once more: {reason}")
            time.sleep(RETRIES.wait_s(failures))


def explain_clock(reason: str) -> str:
    """Return what a wrong clock has to do with a certificate that is not trusted. It changes no trust."""
    year = time.gmtime().tm_year
    if "certificate" not in reason or year >= YEAR_OF_A_CLOCK_THAT_IS_RIGHT:
        return ""
    return f"; this node's clock says {year}: set it (NTP, or the BMC's clock), and no certificate is valid before"


def list_files(purpose: str, join: dict[str, Any], secret: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a join, as path below the root and content."""
    if purpose == "agent":
        yield "etc/assay-agent/token", f"{secret}\n"
    elif purpose == "slurm":
        yield str(join["key_path"]).lstrip("/"), f"{secret}\n"
        yield "etc/default/slurmd", f"SLURMD_OPTIONS=--conf-server={join['conf_server']}\n"
    elif purpose == "kubernetes":
        yield "etc/kubernetes/bootstrap-kubelet.conf", json.dumps(make_kubeconfig(join, secret), indent=1) + "\n"
        labels = ",".join(f"{name}={value}" for name, value in join.get("labels", {}).items())
        taints = ",".join(f"{taint['key']}=:{taint['effect']}" for taint in join.get("taints", []))
        words = [f"--node-labels={labels}"] * bool(labels) + [f"--register-with-taints={taints}"] * bool(taints)
        yield "etc/default/kubelet", f'KUBELET_EXTRA_ARGS="{" ".join(words)}"\n'


def make_kubeconfig(join: dict[str, Any], token: str) -> dict[str, Any]:
    """Return the kubeconfig with which a kubelet asks for its certificate; JSON is YAML."""
    authority = base64.b64encode(str(join["ca"]).encode()).decode()
    cluster = {"server": join["api_server"], "certificate-authority-data": authority}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "bootstrap", "user": {"token": token}}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": "cluster", "user": "bootstrap"}}],
        "current-context": "bootstrap",
    }


def write_secret(path: Path, content: str) -> None:
    """Write a file whole, readable by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    coming = path.with_name(f".{path.name}.coming")
    coming.unlink(missing_ok=True)
    descriptor = os.open(coming, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    coming.replace(path)


def read_plan(root: Path) -> dict[str, Any]:
    """Return what cloud-init wrote. Raises OSError, or ValueError where it is something else."""
    plan = json.loads((root / PLAN).read_text())
    if not isinstance(plan, dict) or not plan.keys() >= {"secure_url", "attempt", "joins"}:
        raise ValueError(f"/{PLAN} is not what assay's user-data writes")
    return plan


def main(arguments: Sequence[str] | None = None) -> None:
    """Run once. Raises SystemExit."""
    parser = argparse.ArgumentParser("assay-join", description="Prove which machine this is, and fetch its secrets.")
    parser.add_argument("--root", type=Path, default=Path("/"), help="the folder in place of /")
    parser.add_argument("--wait", type=float, default=300.0, metavar="S", help="how long to ask (default: 300)")
    options = parser.parse_args(arguments)
    bearer: list[str] = []
    try:
        plan = read_plan(options.root)
        authority = options.root / AUTHORITY
        ca = str(authority) if authority.exists() else ""
        connection = ControllerConnection(plan["secure_url"], lambda: "".join(bearer), ca=ca)
    except (OSError, ValueError) as error:
        _say(f"cannot ask: {error}")
        sys.exit(2)
    try:
        NodeJoin(options.root, plan, connection, options.wait, bearer, _say).run()
    except JoinFailed as error:
        _say(str(error))
        sys.exit(1)


def _say(text: str) -> None:
    print(f"assay join: {escape_line(text)}", file=sys.stderr, flush=True)  # noqa: T201 — for people


if __name__ == "__main__":
    main()
