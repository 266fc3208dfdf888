"""A BMC's user and password come from where the inventory says: four kinds of places. Nothing shows them."""

from __future__ import annotations

import contextlib
import os
import resource
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assay.adapters.bmc.session import read_bmc_credentials
from assay.declare import secret_lookup
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.model.text.safe_text import REDACTION, redact

SECRET = "watcher:tell-nobody-51c0"
PASSWORD = SECRET.partition(":")[2]


def node(reference: Any) -> Node:
    settings = make_node_settings({"bmc_credentials": reference})
    return Node("n1", "pool", "lab", "r1", 1, "S1", "spec", "managed", settings=settings)


def password(reference: Any, root: Path) -> str:
    return read_bmc_credentials(node(reference), root).password


def trouble(reference: Any, root: Path) -> str:
    with pytest.raises(AssayError) as raised:
        read_bmc_credentials(node(reference), root)
    assert raised.value.where == "n1 bmc_credentials"
    assert PASSWORD not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fleet repository with nothing in it, and an Ansible that nobody configured."""
    for name in ("ANSIBLE_CONFIG", "ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_from_the_environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_BMC", SECRET)
    assert password({"env": "SOME_BMC"}, root) == PASSWORD


def test_from_the_first_line_of_a_file_below_the_repository(root: Path) -> None:
    (root / "bmc").write_text(f"{SECRET}\nsomething else\n")
    assert password({"file": "bmc"}, root) == PASSWORD


def test_from_the_first_line_that_a_command_prints_without_any_shell(root: Path) -> None:
    program = script(root / "fetch", f'echo "{SECRET}"; echo "$1"; echo other >&2')
    assert password({"command": ["./fetch", "$HOME; exit 1"]}, root) == PASSWORD
    assert program.exists()


def test_a_command_is_read_by_a_process_that_has_a_thousand_open_files(root: Path) -> None:
    script(root / "fetch", f'echo "{SECRET}"')
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        while (last := stack.enter_context(Path(os.devnull).open())).fileno() < 1024:  # what select() refuses
            pass
        assert last.fileno() >= 1024
        assert password({"command": ["./fetch"]}, root) == PASSWORD


def test_from_a_vault_that_ansible_itself_encrypted(root: Path) -> None:
    (root / "ansible.cfg").write_text("[defaults]\nvault_password_file = vault-password\n")
    (root / "vault-password").write_text("open sesame\n")
    assert password({"vault": {"__ansible_vault": encrypted(root, SECRET)}}, root) == PASSWORD


def test_the_vault_password_may_be_named_in_the_environment_and_printed_by_a_program(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script(root / "ask-vault", "echo open sesame")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(program))
    assert password({"vault": encrypted(root, SECRET)}, root) == PASSWORD


def test_a_vault_identity_list_is_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "vault-password").write_text("open sesame\n")
    sealed = encrypted(root, SECRET, "--vault-id", f"lab@{root}/vault-password")
    monkeypatch.setenv("ANSIBLE_VAULT_IDENTITY_LIST", f"lab@{root}/vault-password")
    assert "lab" in sealed.splitlines()[0]
    assert password({"vault": sealed}, root) == PASSWORD


def test_a_vault_without_its_password_says_what_to_set(root: Path) -> None:
    (root / "vault-password").write_text("open sesame\n")
    sealed = encrypted(root, SECRET, "--vault-password-file", str(root / "vault-password"))
    assert "there is no vault password" in trouble({"vault": sealed}, root)
    assert "ANSIBLE_VAULT_PASSWORD_FILE" in trouble({"vault": sealed}, root)


def test_a_vault_with_another_password_stays_shut(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "vault-password").write_text("open sesame\n")
    sealed = encrypted(root, SECRET, "--vault-password-file", str(root / "vault-password"))
    (root / "other").write_text("close sesame\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(root / "other"))
    assert "none of the vault passwords opens it" in trouble({"vault": sealed}, root)
    assert "damaged" in trouble({"vault": "$ANSIBLE_VAULT;1.1;AES256\nnot hexadecimal"}, root)


def test_a_vault_password_program_that_fails_is_named_and_not_repeated(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script(root / "ask-client", f"echo {PASSWORD} >&2; exit 3")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(program))
    assert "ask-client gives no password" in trouble({"vault": "$ANSIBLE_VAULT;1.1;AES256\n3031"}, root)


def test_a_command_that_fails_is_named_and_nothing_that_it_says_is_repeated(root: Path) -> None:
    script(root / "fails", f"echo {PASSWORD}; echo {PASSWORD} >&2; exit 7")
    said = trouble({"command": ["./fails", PASSWORD]}, root)
    assert "the command fails ended with exit status 7" in said
    assert "run it by hand" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exit 0", "the command odd gives nothing"),
        (f"echo {PASSWORD}", 'does not hold "user:password"'),
        ("exec 0<&1; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", "printed more than 64 KiB"),
    ],
)
def test_a_command_that_gives_something_else_is_told_so(root: Path, text: str, said: str) -> None:
    script(root / "odd", text)
    assert said in trouble({"command": ["./odd"]}, root)


def test_a_command_that_is_not_there_is_told_so(root: Path) -> None:
    assert "nowhere cannot be started: No such file" in trouble({"command": ["./nowhere"]}, root)


def test_a_command_that_hangs_is_ended_with_all_that_it_started(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_lookup, "COMMAND_TIMEOUT_S", 0.3)
    script(root / "hangs", f"sleep 60 & echo $! > {root}/child; wait")
    began = time.monotonic()
    assert "did not end within 0.3 s" in trouble({"command": ["./hangs"]}, root)
    assert time.monotonic() - began < 30
    child = int((root / "child").read_text())
    while alive(child):  # a signal takes its moment on a busy machine
        assert time.monotonic() - began < 30
        time.sleep(0.01)


def test_a_command_runs_once_for_hundreds_of_bmcs_at_the_same_time(root: Path) -> None:
    script(root / "counts", f"echo x >> {root}/runs; sleep 0.2; echo '{SECRET}'")
    threads = [threading.Thread(target=password, args=({"command": ["./counts"]}, root)) for _ in range(300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (root / "runs").read_text() == "x\n"


def test_a_command_that_fails_is_not_tried_for_every_bmc(root: Path) -> None:
    script(root / "fails", f"echo x >> {root}/runs; exit 1")
    assert {trouble({"command": ["./fails"]}, root) for _ in range(5)} == {trouble({"command": ["./fails"]}, root)}
    assert (root / "runs").read_text() == "x\n"


def test_a_node_without_a_reference_has_no_credentials(root: Path) -> None:
    assert "no credentials are declared" in trouble(None, root)


@pytest.mark.parametrize(
    "reference",
    [{}, "watcher:x", {"env": "A", "file": "b"}, {"command": []}, {"command": "cat x"}, {"vault": "x"}],
)
def test_what_is_no_reference_is_refused(reference: Any) -> None:
    with pytest.raises(ValidationError):
        node(reference)


def test_whoever_read_a_secret_hides_it_in_every_spelling(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_BMC", 'watcher:quo"te/and+plus')
    password({"env": "SOME_BMC"}, root)
    spelt = ['quo"te/and+plus', 'quo\\"te/and+plus', "quo%22te%2Fand%2Bplus", "d2F0Y2hlcjpxdW8idGUvYW5kK3BsdXM"]
    assert [redact(f"<{one}>") for one in spelt] == [f"<{REDACTION}>"] * 4


def encrypted(root: Path, text: str, *options: str) -> str:
    """Return the text as `ansible-vault` encrypts it."""
    program = Path(sys.executable).parent / "ansible-vault"
    command = [sys.executable, str(program), "encrypt", "--output", "-", *options, "-"]
    told = subprocess.run(command, cwd=root, input=text, env=os.environ, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return told.stdout


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
