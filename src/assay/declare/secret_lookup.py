"""Reads the secret of a reference: from an environment variable, a file, a command or an Ansible vault.

Vaults are decrypted with ansible-core's own code and passwords. Ansible is imported only then: its import takes longer
than everything else that reading a BMC needs. A slow question is asked once for many threads, and its answer kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, TypeVar

from assay.model.errors import AssayError
from assay.model.specs.credential_reference import CredentialReference as Reference
from assay.model.text.safe_text import register_secret

T = TypeVar("T")


class SharedAnswerCache(Generic[T]):
    """Keeps each answer, and each AssayError, for `seconds`. Threads that ask meanwhile wait for the first one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answers: dict[Hashable, tuple[float, T | AssayError]] = {}
        self._locks: dict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def __call__(self, question: Hashable, ask: Callable[[], T]) -> T:
        """Return the answer to a question: a cached one, or what `ask` returns. Raises the AssayError of `ask`."""
        with self._guard:
            lock = self._locks[question]
        with lock:
            cached = self._answers.get(question)
            if cached is None or time.monotonic() - cached[0] > self._seconds:
                cached = self._answers[question] = (time.monotonic(), _call(ask))
        answer = cached[1]
        if isinstance(answer, AssayError):
            raise AssayError(answer.what, where=answer.where, fix=answer.fix)
        return answer

    def clear(self) -> None:
        """Forget every answer."""
        self._answers.clear()


def _call(ask: Callable[[], T]) -> T | AssayError:
    try:
        return ask()
    except AssayError as error:
        return error


VAULT_CACHE_S = 300.0
VAULT_VARIABLES = ("ANSIBLE_CONFIG", "ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST")
"""Where Ansible finds a vault's passwords: with another value of one, the passwords are looked for again."""
VAULT_PASSWORD_FIX = "set ANSIBLE_VAULT_PASSWORD_FILE, or vault_password_file in ansible.cfg"  # noqa: S105 — advice, no password
_password_cache: SharedAnswerCache[list[tuple[str, Any]]] = SharedAnswerCache(VAULT_CACHE_S)
_decrypted_cache: SharedAnswerCache[str] = SharedAnswerCache(VAULT_CACHE_S)
COMMAND_TIMEOUT_S = 10.0
SECRET_CACHE_S = 300.0
MAX_SECRET_BYTES = 64 * 1024
_command_cache: SharedAnswerCache[str] = SharedAnswerCache(SECRET_CACHE_S)


def read_secret(reference: Reference, root: Path) -> str:
    """Return the secret of a reference, "" for an environment variable that is not set. Registers it for redaction.

    Relative paths and commands start at `root`. If the parent process handed the secret over, that one is returned.
    Raises AssayError if a file, command or vault cannot be read.
    """
    text = os.environ.get(handover_variable(reference)) or _follow(reference, root)
    register_secret(text)
    return text


def describe_reference(reference: Reference) -> str:
    """Return a name for the place of a secret. Of a command, only the program's name is shown."""
    if reference.env:
        return f"the environment variable {reference.env}"
    if reference.command:
        return f"the command {Path(reference.command[0]).name}"
    return reference.file or "the vault"


def handover_variable(reference: Reference) -> str:
    """Return the environment variable in which assay hands a secret to a program that it starts."""
    return f"ASSAY_SECRET_{hashlib.sha256(reference.model_dump_json().encode()).hexdigest()[:16]}"


def forget_command_answers() -> None:
    """Run each command again when its secret is next needed."""
    _command_cache.clear()


def decrypt_vault(sealed: str, root: Path) -> str:
    """Return a decrypted vault text. Passwords are found by the configuration in `root/ansible.cfg`.

    Raises AssayError if the text is damaged or no password fits.
    """
    return _decrypted_cache((sealed, root), lambda: _decrypt(sealed, root))


def _decrypt(sealed: str, root: Path) -> str:
    from ansible.errors import AnsibleError
    from ansible.parsing.vault import AnsibleVaultFormatError, VaultLib

    passwords = _password_cache((root, *map(os.environ.get, VAULT_VARIABLES)), lambda: _find_passwords(root))
    try:
        text = VaultLib(passwords).decrypt(sealed.strip().encode())
        return str(text.decode())
    except (AnsibleVaultFormatError, UnicodeDecodeError):
        raise AssayError("the vault text is damaged", fix="encrypt it again: `ansible-vault encrypt_string`") from None
    except AnsibleError:
        raise AssayError("none of the vault passwords opens it", fix=VAULT_PASSWORD_FIX) from None


def _find_passwords(root: Path) -> list[tuple[str, Any]]:
    """Return the vault passwords with their identities, as Ansible's configuration names them."""
    from ansible.config.manager import ConfigManager
    from ansible.parsing.dataloader import DataLoader

    file = root / "ansible.cfg"
    config = ConfigManager(str(file) if file.exists() and "ANSIBLE_CONFIG" not in os.environ else None)
    identity = config.get_config_value("DEFAULT_VAULT_IDENTITY")
    listed = [str(entry).rpartition("@") for entry in config.get_config_value("DEFAULT_VAULT_IDENTITY_LIST")]
    sources = [(name or identity, source) for name, _, source in listed]
    if alone := config.get_config_value("DEFAULT_VAULT_PASSWORD_FILE"):
        sources.append((identity, alone))
    if not sources:
        raise AssayError("there is no vault password to open it with", fix=VAULT_PASSWORD_FIX)
    loader = DataLoader()
    return [(name, _read_password(str(source), name, loader)) for name, source in sources]


def _read_password(source: str, identity: str, loader: Any) -> Any:
    """Return the password in a file, or the one that an executable file prints."""
    from ansible.errors import AnsibleError
    from ansible.parsing.vault import get_file_vault_secret

    if source.startswith("prompt"):
        raise AssayError("assay cannot prompt for a vault password", fix=VAULT_PASSWORD_FIX)
    try:
        secret = get_file_vault_secret(source, identity, loader=loader)
        secret.load()
    except (AnsibleError, OSError):  # its message may contain what a script printed
        raise AssayError(
            f"the vault password file {source} gives no password", fix="run it by hand to see why"
        ) from None
    register_secret(secret.bytes.decode(errors="surrogateescape"))
    return secret


def _follow(reference: Reference, root: Path) -> str:
    if reference.env:
        return os.environ.get(reference.env, "")
    if reference.file:
        return _read_first_line(root / reference.file)
    if reference.command:
        words = tuple(reference.command)
        return _command_cache((words, root), lambda: _run(words, root))
    return decrypt_vault(reference.vault, root).partition("\n")[0].rstrip("\r")


def _read_first_line(path: Path) -> str:
    try:
        with path.open() as lines:
            return lines.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise AssayError(f"{path} cannot be read: {reason}") from None


def _run(words: tuple[str, ...], root: Path) -> str:
    """Return the first line that a command prints. Its standard error is discarded: it may hold the secret."""
    name = Path(words[0]).name
    by_hand = "run it by hand to see why"
    try:
        process = subprocess.Popen(
            words,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise AssayError(f"the command {name} cannot be started: {error.strerror}", fix="correct its path") from None
    try:
        printed = _read_output(process, time.monotonic() + COMMAND_TIMEOUT_S)
        code = process.wait(1.0)
    except (TimeoutError, subprocess.TimeoutExpired):
        raise AssayError(f"the command {name} did not end within {COMMAND_TIMEOUT_S:g} s", fix=by_hand) from None
    finally:
        _kill(process)
    if code:
        raise AssayError(f"the command {name} ended with exit status {code}", fix=by_hand)
    return printed.partition(b"\n")[0].rstrip(b"\r").decode(errors="replace")


def _read_output(process: subprocess.Popen[bytes], ends_at: float) -> bytes:
    """Return everything that a process prints. Raises TimeoutError at the deadline, AssayError for too much output."""
    assert process.stdout is not None
    printed, output = b"", select.poll()  # select() refuses descriptors from 1024 on, which a busy server has
    output.register(process.stdout, select.POLLIN)
    while len(printed) < MAX_SECRET_BYTES:
        if not output.poll(1000 * max(0.0, ends_at - time.monotonic())):
            raise TimeoutError
        piece = os.read(process.stdout.fileno(), MAX_SECRET_BYTES)
        if not piece:
            return printed
        printed += piece
    raise AssayError(
        f"a command printed more than {MAX_SECRET_BYTES >> 10} KiB", fix="let it print the secret and nothing else"
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the command's process group and close its output."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)
    if process.stdout is not None:
        process.stdout.close()
