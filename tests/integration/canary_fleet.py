"""A virtual fleet whose BMCs' password is a canary, reached in four ways, and nodes whose credentials do not work."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from assay.lab.faults.injection import inject_fault
from tests.support.forked_assay import run_assay
from tests.support.lab_room import lab_room
from tests.support.places import ROOT

GOOD = {"n0003": "env", "n0004": "file", "n0005": "command", "n0006": "vault"}
BAD = {"n0009": "wrong password", "n0010": "no pair", "n0011": "failing command"}
REBOOTED = (*GOOD, "n0009")
GENTLE = {
    "pool_percent: 25": "pool_percent: 100",
    "rack_concurrent: 2": "rack_concurrent: 9",
    "reboots_per_hour: 6": "reboots_per_hour: 99",
    "min_nodes: 4": "min_nodes: 99",
}
TELLTALE = """
    - name: The whole environment of the controller
      ansible.builtin.debug: {msg: "{{ lookup('pipe', 'env') }}"}
    - name: A task that says what it was given
      ansible.builtin.debug: {msg: "{{ lookup('env', 'CANARY_BMC') }} {{ lookup('env', 'SITE_API_TOKEN') }}"}
"""


class Sealed(str):
    """The text of a `!vault` scalar."""


yaml.SafeDumper.add_representer(Sealed, lambda dumper, text: dumper.represent_scalar("!vault", str(text), style="|"))


@dataclass
class CanaryFleet:
    """`canaries` are the secrets, by what they are; `outside` holds what legitimately holds them; `said` all output."""

    root: Path
    outside: Path
    canaries: dict[str, str]
    said: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What a person has in the environment who runs assay here."""
        return os.environ | {
            "CANARY_BMC": f"assay:{self.canaries['the password']}",
            "WRONG_BMC": f"assay:{self.canaries['a wrong password']}",
            "SITE_API_TOKEN": self.canaries["another program's token"],
            "ANSIBLE_VAULT_PASSWORD_FILE": str(self.outside / "vault-password"),
            "TMPDIR": str(self.root / ".assay-lab" / "tmp"),
        }

    def assay(self, *words: str) -> int:
        """Run a verb as a person does, and keep everything that it says."""
        told = run_assay(words[0], "--fleet", self.root, *words[1:], env=self.environment)
        self.said += [f"$ assay {' '.join(words)}", told.stdout, told.stderr]
        return told.returncode

    def leaks(self) -> list[str]:
        """Return which canary stands in which file below the fleet's root, or was said, in any spelling."""
        texts = {str(path.relative_to(self.root)): path.read_bytes() for path in files_below(self.root)}
        texts["what was said"] = "\n".join(self.said).encode()
        return [
            f"{what} in {name}"
            for name, content in texts.items()
            for what, canary in self.canaries.items()
            if any(spelling in content for spelling in spellings(canary))
        ]


def files_below(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def spellings(canary: str) -> list[bytes]:
    """Return a secret as it may be written down: plain, in JSON, in a URL, in a header (any of three alignments)."""
    plain = [canary, json.dumps(canary)[1:-1], quote(canary, safe="")]
    aligned = [base64.b64encode(b"x" * pad + canary.encode())[4:-4] for pad in (0, 1, 2)]
    return [*(text.encode() for text in plain), *aligned]


@contextmanager
def canary_fleet(root: Path, outside: Path) -> Iterator[CanaryFleet]:
    """Lay out a fleet at `root` with its lab up, in which no canary stands; `outside` is everybody else's machine."""
    with lab_room(root) as room:
        (root / "suites").symlink_to(ROOT / "suites")
        (root / ".assay-lab" / "tmp").mkdir()
        account = root / ".assay-lab" / "world" / "credentials"
        canaries = {
            "the password": account.read_text().strip().partition(":")[2],
            "a wrong password": 'wrong"canary/of+the lab-71',
            "a secret that is no pair": "canary-without-a-colon-5a",
            "what a failing command prints": "canary-of-a-command-c3",
            "another program's token": "canary-of-another-program-e8",
            "the vault's password": "canary-of-the-vault-19",
        }
        account.unlink()  # the BMCs hold it in memory, and nobody reads the file any more
        fleet = CanaryFleet(root, outside, canaries)
        change_inventory(fleet)
        soften(root / "specs" / "lifecycle" / "default.yaml", GENTLE)
        with (root / "playbooks" / "reboot.yml").open("a") as playbook:
            playbook.write(TELLTALE)
        for node in REBOOTED:
            inject_fault(room.world, "gpu.xid", node, {"gpu": 4, "xid": 79})
        yield fleet


def soften(path: Path, changes: Mapping[str, str]) -> None:
    text = path.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def change_inventory(fleet: CanaryFleet) -> None:
    """Let the lab's inventory refer to the canaries, each node in its own way."""
    path = fleet.root / ".assay-lab" / "world" / "inventory.yml"
    inventory = yaml.safe_load(path.read_text())
    hosts, references = inventory["all"]["hosts"], written_references(fleet)
    for name, variables in hosts.items():
        way = GOOD.get(name) or BAD.get(name) or "env"
        variables["bmc_credentials"] = references[way]
    path.write_text(yaml.safe_dump(inventory))


def written_references(fleet: CanaryFleet) -> dict[str, dict[str, Any]]:
    """Write the canaries down outside of the fleet, and return how to refer to each."""
    pair, said = f"assay:{fleet.canaries['the password']}", fleet.canaries["what a failing command prints"]
    fleet.outside.mkdir()
    write(fleet.outside / "pair", pair)
    write(fleet.outside / "no-pair", fleet.canaries["a secret that is no pair"])
    write(fleet.outside / "vault-password", fleet.canaries["the vault's password"])
    write(fleet.outside / "fetch", f"#!/bin/sh\necho '{pair}'\necho '{pair}' >&2", 0o700)
    write(fleet.outside / "fail", f"#!/bin/sh\necho '{said}'\necho '{said}' >&2\nexit 1", 0o700)
    return {
        "env": {"env": "CANARY_BMC"},
        "file": {"file": str(fleet.outside / "pair")},
        "command": {"command": [str(fleet.outside / "fetch")]},
        "vault": {"vault": Sealed(encrypted(fleet, pair))},
        "wrong password": {"env": "WRONG_BMC"},
        "no pair": {"file": str(fleet.outside / "no-pair")},
        "failing command": {"command": [str(fleet.outside / "fail")]},
    }


def write(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text + "\n")
    path.chmod(mode)


def encrypted(fleet: CanaryFleet, text: str) -> str:
    """Return a text as `ansible-vault` encrypts it."""
    command = [sys.executable, str(Path(sys.executable).parent / "ansible-vault"), "encrypt", "--output", "-", "-"]
    told = subprocess.run(command, env=fleet.environment, input=text, capture_output=True, text=True, check=True)
    return told.stdout
