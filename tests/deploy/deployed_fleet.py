"""A fleet as `assay init` makes it, with every output on that the docs promise: seals, tickets in a folder, mail.

A node is new to it, so that its technician gets a ticket. The fleet trusts assay so far that tickets leave the machine.
"""

from __future__ import annotations

import email
import email.policy
import hashlib
import re
import subprocess
from collections.abc import Iterable
from email.message import EmailMessage
from pathlib import Path

import trustme
import yaml

from assay.declare.starter.new_repository import create_repository
from tests.support.places import ROOT

STATE = "/var/lib/assay"
"""Where the docs say that outputs belong (docs/install.md)."""
SEALS, TICKETS = f"{STATE}/fleet.seals", f"{STATE}/tickets"
NEW, WITH_AGENT = "n0004", "n0001"
AGENT_TOKEN = "a-token-of-the-agent"
MAIL_PORT = 8025
MAIL_SECRET = "OPERATORS_MAIL"
SPECS = {
    "specs/tickets/files.yaml": {"kind": "TicketRoute", "name": "files", "markdown": {"folder": TICKETS}},
    "specs/tickets/mail.yaml": {
        "kind": "TicketRoute",
        "name": "mail",
        "notify": {"channel": "operators", "credentials": {"env": MAIL_SECRET}},
    },
    "specs/schedules/seal.yaml": {
        "kind": "Schedules",
        "name": "seal",
        "sources": ["the test"],
        "schedules": {
            "seal": {"does": "ledger-seal", "every_minutes": 1, "anchors": [f"file:{SEALS}", "git-note"]},
        },
    },
}


def make_fleet(folder: Path, bundle: Path) -> None:
    """Make the fleet, in a repository with one commit, and a bundle of it, from which everybody can clone."""
    create_repository(folder, "github")
    for name, spec in SPECS.items():
        (folder / name).write_text(yaml.safe_dump({**spec, "owner": "fleet-engineering"}))
    pool = folder / "inventory/h100-a.yml"
    digest = hashlib.sha256(AGENT_TOKEN.encode()).hexdigest()
    known, node = f"n0003, {NEW}]", f"    {WITH_AGENT}:\n"
    text = pool.read_text().replace(known, "n0003]").replace(node, f"{node}      agent_token: {{sha256: {digest}}}\n")
    pool.write_text(text)
    policy = folder / "specs/lifecycle/default.yaml"
    policy.write_text(policy.read_text().replace("\n  fleet: watch\n", "\n  fleet: suggest\n"))
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@acme.example"]
    for words in (
        ["add", "--all"],
        ["commit", "--quiet", "--message=Fleet"],
        ["branch", "--move", "main"],
        ["bundle", "create", "--quiet", str(bundle), "HEAD", "main"],
    ):
        subprocess.run([*git, *words], check=True)


def write_certificates(folder: Path, *names: str) -> None:
    """Write an authority (`ca.pem`), and certificate and key of a server of these names."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    made = authority.issue_cert(*names)
    made.private_key_pem.write_to_path(folder / "server.key")
    made.cert_chain_pems[0].write_to_path(folder / "server.pem")


def write_environment(file: Path, mail_host: str, authority: str) -> dict[str, str]:
    """Write the file of variables that units, compose and Kubernetes take, and return its secrets by name."""
    secrets = {
        MAIL_SECRET: f"mailtos://{mail_host}:{MAIL_PORT}?mode=starttls&from=assay@acme.example&to=ops@acme.example",
        "ASSAY_BMC": "admin:a-secret",
    }
    world = {**secrets, "SSL_CERT_FILE": authority}
    file.write_text("".join(f"{name}={value}\n" for name, value in world.items()))
    file.chmod(0o600)
    return secrets


def list_mail_server_words(folder: str, mailbox: str) -> list[str]:
    """Return the words, after Python, that start a mail server which takes nothing in the clear."""
    return [
        *("-m", "aiosmtpd", "--nosetuid", f"--listen=0.0.0.0:{MAIL_PORT}"),
        *("--tlscert", f"{folder}/server.pem", "--tlskey", f"{folder}/server.key"),
        *("--class", "aiosmtpd.handlers.Mailbox", mailbox),
    ]


def read_shell_blocks(page: str, heading: str) -> list[list[str]]:
    """Return the commands of each block of a shell below a heading of the docs."""
    text = (ROOT / "docs" / page).read_text().split(f"\n## {heading}\n")[1].partition("\n## ")[0]
    return [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]


def find_lacks(seals: Path, tickets: Path, mailbox: Path, notes: str) -> list[str]:
    """Return which outputs are not there yet. `notes`: what git shows of the notes."""
    return [
        name
        for name, is_there in {
            "a seal in the file": seals.exists() and seals.read_text().count("\n"),
            "a seal in a git note": notes.strip(),
            "a ticket in the folder": any(NEW in file.read_text() for file in tickets.glob("*.md")),
            "a mail about the ticket": any(
                NEW in str(mail["subject"]) + _read_text(mail) for mail in read_mails(mailbox)
            ),
        }.items()
        if not is_there
    ]


def read_mails(mailbox: Path) -> Iterable[EmailMessage]:
    """Yield the messages of a maildir."""
    for file in mailbox.glob("new/*"):
        message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        yield message


def _read_text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain", "html"))
    return str(body.get_content()) if body else ""
