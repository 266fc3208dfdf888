"""Recognises secrets: by the name of a value, by its shape, or because it looks random.

The patterns are data, each with its source. detect-secrets 1.5 was measured first: it reads about 3,000 lines a CPU
second, and a fleet of 10,000 nodes has 150,000; its last release is of 2024.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

from assay.model.text.safe_text import register_secret

HARMLESS_VARIABLE = "hca_guids"  # three quarters of an inventory's texts, in a form that cannot hide a secret
VAULT = "__ansible_vault"


class SecretHint(IntEnum):
    """What a name says about its value."""

    NOTHING = 0
    POSSIBLE = 1
    """A random-looking value is a secret: `key`, `cookie`, anything below `credentials`."""
    CERTAIN = 2
    """Any plain text is a secret: `password`."""


class SecretShape(NamedTuple):
    """A kind of secret with a known form. Each contains one of `needles`, which are fast to search for."""

    label: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    source: str


PRIVATE_KEY_SHAPE = SecretShape(
    "a private key",
    ("-----BEGIN ", "PuTTY-User-Key-File-"),
    re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d"),
    "RFC 7468; RFC 9580; openssh PROTOCOL.key",
)
URL_PASSWORD_SHAPE = SecretShape(
    "a password in a URL",
    ("://",),
    re.compile(r"[a-z][a-z0-9+.-]*://[^\s/:@]*:(?![$<{])[^\s/@]+@", re.IGNORECASE),
    "RFC 3986, section 3.2.1",
)
TOKEN_SHAPES = (
    SecretShape(
        "an AWS access key",
        ("AKIA", "ASIA"),
        re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        "AWS IAM User Guide, unique identifiers",
    ),
    SecretShape(
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})"),
        "GitHub Docs, about authentication to GitHub: token formats",
    ),
    SecretShape(
        "a GitLab token",
        ("glpat-", "glrt-", "gldt-", "glcbt-", "glptt-", "glft-"),
        re.compile(r"\bgl(?:pat|rt|dt|cbt|ptt|ft)-[\w-]{20,}"),
        "GitLab Docs, token overview: token prefixes",
    ),
    SecretShape(
        "a Slack token",
        ("xox", "hooks.slack.com/"),
        re.compile(r"\bxox[abeoprs]-[\w-]{10,}|hooks\.slack\.com/services/T\w+/B\w+/\w{16,}"),
        "Slack API, token types; incoming webhooks",
    ),
    SecretShape(
        "a JSON Web Token",
        ("eyJ",),
        re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"),
        "RFC 7519: base64url of a JSON object, three times",
    ),
    SecretShape(
        "a HashiCorp Vault token",
        ("hvs.", "hvb.", "hvr."),
        re.compile(r"\bhv[sbr]\.[\w-]{20,}"),
        "HashiCorp Vault documentation, tokens",
    ),
    SecretShape("an NVIDIA API key", ("nvapi-",), re.compile(r"\bnvapi-[\w-]{40,}"), "NVIDIA NGC User Guide"),
    SecretShape(
        "a Hugging Face token", ("hf_",), re.compile(r"\bhf_[A-Za-z0-9]{30,}\b"), "Hugging Face, access tokens"
    ),
    SecretShape("a Google API key", ("AIza",), re.compile(r"\bAIza[\w-]{35}\b"), "gitleaks, gcp-api-key"),
    SecretShape("an API key", ("sk-",), re.compile(r"\bsk-(?:ant-|proj-)?[\w-]{32,}"), "gitleaks, openai-api-key"),
    SecretShape(
        "an age key", ("AGE-SECRET-KEY-",), re.compile(r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"), "age(1), identity files"
    ),
    SecretShape(
        "a password's hash",
        ("$1$", "$5$", "$6$", "$y$", "$gy$", "$2a$", "$2b$", "$2y$"),
        re.compile(r"(?:^|[\s:'\"])\$(?:1|5|6|y|gy|2[aby])\$[./A-Za-z0-9$=,]{20,}"),
        "crypt(5)",
    ),
)
SECRET_SHAPES = (PRIVATE_KEY_SHAPE, URL_PASSWORD_SHAPE, *TOKEN_SHAPES)
SHAPE_NEEDLES = tuple(needle for shape in SECRET_SHAPES for needle in shape.needles)

_CERTAIN_NAME = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|passcode|pwd|secret|token|community|credential|psk|apikey"
    r"|(?:api|access|private|secret|signing|encryption|shared|auth|account|master)_?key)s?(?:_|$)"
    r"|(?:^|_)(?:become|ssh|sudo|user|admin|root|bmc|ipmi|db)_pass$"
)
_POSSIBLE_NAME = re.compile(
    r"(?:^|_)(?:key|auth|cookie|salt|hmac|cred|session|bearer|seed|licen[cs]e|pin|pass)s?(?:_|$)"
)
_ABOUT_A_SECRET = re.compile(
    r"_(?:files?|paths?|dir|env|var|variable|command|cmd|names?|ids?|ref|reference|url|uri|endpoint|ttl|age|days|hours"
    r"|minutes|seconds|timeout|expiry|expires|lifetime|length|size|min|max|count|policy|rotation|required|enabled"
    r"|disabled|type|kind|format|algorithm|hash|digest|checksum|fingerprint|sha\d+|namespace|store|backend|provider"
    r"|source|prompt|user|username|lookup|class|pattern|description|hint|label|title|owner|group|role|mode|version"
    r"|public|to)$"
    r"|public_?key|(?:^|_)(?:max|min|number_of)_"
)
REFERENCE_NAMES = frozenset(("env", "file", "command", "vault"))
_HARMLESS_NAMES = frozenset(("sha256", "user", "username", "name", "id", "description", "site", "host", "type", "kind"))
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_JINJA = re.compile(r"\{[{%].*[}%]\}", re.DOTALL)
_RANDOM = re.compile(r"[A-Za-z0-9+/=_.-]{20,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WORDS = re.compile(r"[A-Za-z0-9]{1,12}(?:[._/-][A-Za-z0-9]{1,12})+")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]+")
HEX_LIMIT, OTHER_LIMIT = 3.0, 3.9
"""Bits of entropy per character. detect-secrets uses 3.0 for hexadecimal and 4.5 for base64, whatever the name. Here
only values with a suspicious name are tested."""


@lru_cache(maxsize=4096)
def classify_name(name: str) -> SecretHint:
    """Return what a name says about its value. A name about a secret (`token_file`, `password_length`) says nothing."""
    plain = _WORD_BOUNDARY.sub("_", name).lower().strip("_")
    if plain in REFERENCE_NAMES or _ABOUT_A_SECRET.search(plain):
        return SecretHint.NOTHING
    if _CERTAIN_NAME.search(plain):
        return SecretHint.CERTAIN
    return SecretHint.POSSIBLE if _POSSIBLE_NAME.search(plain) else SecretHint.NOTHING


def classify_child(name: Any, above: SecretHint) -> SecretHint:
    """Return what is known of the value at `name` in a mapping, where `above` is known of the mapping itself."""
    if not isinstance(name, str):
        return SecretHint.NOTHING
    plain = name.lower()
    if plain in REFERENCE_NAMES or plain in _HARMLESS_NAMES or _ABOUT_A_SECRET.search(plain):
        return SecretHint.NOTHING
    return max(classify_name(name), min(above, SecretHint.POSSIBLE))


def is_plain_text(text: str) -> bool:
    """Whether a text is the value itself, and neither a Jinja expression nor encrypted."""
    return bool(text.strip()) and not _JINJA.search(text) and not text.startswith("$ANSIBLE_VAULT;")


def is_secret(text: str, known: SecretHint, name: str = "") -> bool:
    """Whether a text is a secret, given what its name says."""
    if known is SecretHint.NOTHING or not is_plain_text(text):
        return False
    if name.lower().endswith("key") and text.startswith(("/", "~/", "./", "ssh-", "ecdsa-", "sk-ssh-")):
        return False  # the path of a key, or a public key
    return known is SecretHint.CERTAIN or looks_random(text)


def looks_random(text: str) -> bool:
    """Whether a text looks random, and not like words, a UUID or a short number."""
    if not _RANDOM.fullmatch(text) or _UUID.fullmatch(text) or _WORDS.fullmatch(text) or not re.search(r"\d", text):
        return False
    if _HEX.fullmatch(text):
        return len(text) >= 32 and _entropy(text) >= HEX_LIMIT
    return _entropy(text) >= OTHER_LIMIT


def register_environment_secrets(*named: str) -> None:
    """Redact the values of these environment variables from now on, and of all variables with a secret's name."""
    for name, text in os.environ.items():
        if name in named or (classify_name(name) is SecretHint.CERTAIN and len(text) >= 8 and not text.startswith("/")):
            register_secret(text)


def find_secret_shape(text: str, shapes: Sequence[SecretShape] = SECRET_SHAPES) -> SecretShape | None:
    """Return the first shape that occurs in a text."""
    return next((shape for shape in shapes if shape.pattern.search(text)), None)


def _entropy(text: str) -> float:
    """Return the entropy of a text in bits per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def may_hold_secrets(data: Any) -> bool:
    """Whether a document with this data needs a closer look.

    A fast test without paths: it reads every value of 10,000 nodes.
    """
    hints: dict[Any, SecretHint] = {}
    texts: set[Any] = set()
    waiting: list[Any] = [{"": data}]
    while waiting:
        mapping = waiting.pop()
        for name, value in mapping.items():
            if name not in hints:
                hints[name] = classify_name(str(name))
            if hints[name] and not _is_harmless(value):
                return True
            if isinstance(value, dict):
                waiting.append(value)
            elif isinstance(value, list) and name != HARMLESS_VARIABLE:
                _add_list(value, texts, waiting)
            elif isinstance(value, str):
                texts.add(value)
    joined = "\n".join(text for text in texts if isinstance(text, str))
    return any(needle in joined for needle in SHAPE_NEEDLES)


def _add_list(values: list[Any], texts: set[Any], waiting: list[Any]) -> None:
    """Add a list's items to `texts`, or to `waiting` if it holds mappings or lists, which is rare."""
    try:
        texts.update(values)
    except TypeError:
        waiting += [{"": value} for value in values]


def _is_harmless(value: Any) -> bool:
    """Whether a value with a suspicious name is a reference, or cannot be a secret."""
    if isinstance(value, dict):
        return VAULT in value or REFERENCE_NAMES.issuperset(value)
    return isinstance(value, bool | float | None) or (isinstance(value, str) and not is_plain_text(value))
