"""Opens what Ansible's vault encrypted, with ansible-core's own code and the passwords that Ansible would take.

Ansible is imported only where a vault is met: it takes longer than all else that reading a BMC needs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from assay.model.errors import Trouble
from assay.model.secrets import remember
from assay.observe.once import Once

KEPT_S = 300.0
FIX = "set ANSIBLE_VAULT_PASSWORD_FILE, or vault_password_file in ansible.cfg"
_passwords: Once[list[tuple[str, Any]]] = Once(KEPT_S)
_opened: Once[str] = Once(KEPT_S)


def opened(sealed: str, root: Path) -> str:
    """Return what a vault text holds. Passwords are found as below `root`, where `ansible.cfg` is. Raises Trouble."""
    return _opened((sealed, root), lambda: _open(sealed, root))


def _open(sealed: str, root: Path) -> str:
    from ansible.errors import AnsibleError
    from ansible.parsing.vault import AnsibleVaultFormatError, VaultLib

    passwords = _passwords((root, *_environment()), lambda: _found(root))
    try:
        text = VaultLib(passwords).decrypt(sealed.strip().encode())
        return str(text.decode())
    except (AnsibleVaultFormatError, UnicodeDecodeError):
        raise Trouble("the vault text is damaged", fix="encrypt it anew: `ansible-vault encrypt_string`") from None
    except AnsibleError:
        raise Trouble("none of the vault passwords opens it", fix=FIX) from None


def _found(root: Path) -> list[tuple[str, Any]]:
    """Return the vault passwords by identity, from where Ansible's own configuration says that they are."""
    from ansible.config.manager import ConfigManager
    from ansible.parsing.dataloader import DataLoader

    ours = root / "ansible.cfg"
    config = ConfigManager(str(ours) if ours.exists() and "ANSIBLE_CONFIG" not in os.environ else None)
    identity = config.get_config_value("DEFAULT_VAULT_IDENTITY")
    listed = [str(one).rpartition("@") for one in config.get_config_value("DEFAULT_VAULT_IDENTITY_LIST")]
    sources = [(name or identity, source) for name, _, source in listed]
    if alone := config.get_config_value("DEFAULT_VAULT_PASSWORD_FILE"):
        sources.append((identity, alone))
    if not sources:
        raise Trouble("there is no vault password to open it with", fix=FIX)
    loader = DataLoader()
    return [(name, _password(str(source), name, loader)) for name, source in sources]


def _password(source: str, identity: str, loader: Any) -> Any:
    """Return the password in a file, or that an executable one prints."""
    from ansible.errors import AnsibleError
    from ansible.parsing.vault import get_file_vault_secret

    if source.startswith("prompt"):
        raise Trouble("nobody is there to be asked for a vault password", fix=FIX)
    try:
        secret = get_file_vault_secret(source, identity, loader=loader)
        secret.load()
    except (AnsibleError, OSError):  # its words may repeat what a script printed
        raise Trouble(f"the vault password file {source} gives no password", fix="see what it says by hand") from None
    remember(secret.bytes.decode(errors="surrogateescape"))
    return secret


def _environment() -> tuple[str | None, ...]:
    names = ("ANSIBLE_CONFIG", "ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST")
    return tuple(os.environ.get(name) for name in names)
