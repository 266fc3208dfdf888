"""Secrets in comments, playbooks, suites and lists, and references that hold the secret itself.

No message repeats a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from assay.declare.repository.git import DECLARED_FOLDERS
from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import RuleFinding, rule
from assay.declare.secret_detection import (
    REFERENCE_NAMES,
    SECRET_SHAPES,
    SHAPE_NEEDLES,
    SecretHint,
    classify_name,
    find_secret_shape,
    is_plain_text,
    looks_random,
)

MAX_TEXT_BYTES = 8 * 1024 * 1024
YAML_ENDINGS = (".yaml", ".yml", "")
TEXT_ENDINGS = (*YAML_ENDINGS, ".py", ".csv", ".json", ".md", ".txt", ".cfg", ".ini", ".toml", ".j2", ".sh")
CI_FOLDERS, CI_FILES = (".github", ".gitlab"), (".gitlab-ci.yml",)
"""What the forges run, with everything in it."""
PARSED_FOLDERS = ("inventory/", "specs/")
"""Values in YAML files of these folders are judged by their names already; here, only their comments are."""
SECRET_WORDS = (
    *("passw", "PASSW", "Passw", "secret", "SECRET", "Secret", "token", "TOKEN", "Token"),
    *("_key", "_KEY", "_pass", "_PASS", "passphrase", "api key", "API key", "community", "credential"),
)
NEEDLES = (*SHAPE_NEEDLES, *SECRET_WORDS)
"""A line without any of these texts holds no secret that is known."""
COMMENT = re.compile(r"(?:^|\s)#(.*)")
TOLD = re.compile(r"([\w -]*\w)\s*(?::|=|\bis\b)\s*[\"'`]?([^\s\"'`,;)]+)[\"'`]?\s*(?:$|[.,;)])", re.IGNORECASE)
"""`bmc password: VALUE` at the end of a phrase."""
ASSIGNED = re.compile(r"[\"']?\b([A-Za-z_]\w*)[\"']?\s*[:=]\s*[\"']([^\"']+)[\"']")
"""`BMC_PASSWORD = "VALUE"`, `password="VALUE"` or `"password": "VALUE"`."""
YAML_PAIR = re.compile(r"^\s*(?:- )?([A-Za-z_]\w*)\s*:\s+([^\s#\"'{\[|>&*!][^#]*?)\s*(?:#.*)?$")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
USER_AND_PASSWORD = re.compile(r"[\w.@-]+:[^\s/:$<{][^\s/:]{3,}")
PASSWORD_OPTION = re.compile(r"--?[\w-]*(?:pass(?:word|wd|phrase)?|secret|token)(?:=(.+))?", re.IGNORECASE)
PRINTERS = ("echo", "printf")
SHELL_PRINT = re.compile(r"\b(?:echo|printf)\s+(?:-\w+\s+)*[\"']?(?![\"'$<{%]|\$\()\S+")
FIX = "remove it, and refer to it: {env: NAME}, {file: PATH}, {command: [PROGRAM, …]} or !vault; then change it"

CI_FIX = "remove it, and refer to a secret of the forge: ${{ secrets.NAME }} or a masked variable; then change it"


class WrittenSecret(NamedTuple):
    """A secret on a line of a file: what it is, without the secret."""

    line: int
    column: int
    message: str


@rule(
    "ASY0247",
    "a secret in a comment, a playbook, a suite, a list or a workflow",
    why="Git keeps it for ever, for everybody who can read the repository.",
)
def written_secret(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find secrets in the text of the declared folders and of the forge's workflows.

    ASY0090 to ASY0094 judge the values of specs and inventory.
    """
    paths = [path for folder in (*DECLARED_FOLDERS, *CI_FOLDERS) for path in draft.tree.files(folder)]
    for path in (*paths, *CI_FILES):
        ending = path[path.rfind(".") :] if "." in path.rpartition("/")[2] else ""
        if ending in TEXT_ENDINGS:
            only_comments = ending in YAML_ENDINGS and path.startswith(PARSED_FOLDERS)
            fix = FIX if path in paths and not path.startswith(CI_FOLDERS) else CI_FIX
            for found in _find_in_text(_read_text(draft, path), only_comments):
                yield RuleFinding((path, found.line, found.column), found.message, fix)


@rule(
    "ASY0248",
    "a reference that holds the secret itself",
    why="{env: NAME} and {command: […]} say where the secret is. Git keeps what stands there for ever.",
)
def secret_in_reference(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find references with a text that is no variable's name, no path, or a program that only prints its words."""
    layers = {id(layer.document): layer.document for layer in draft.inventory.list_all_layers()}
    documents = [*layers.values(), *(spec.document for spec in draft.specs)]
    for document in documents:
        for path, reference in _list_references(document.data):
            what = describe_leak(reference)
            if what:
                place = (document.file, *document.place(path))
                yield RuleFinding(place, f"{path[-1]}: {what}", FIX)


def describe_leak(reference: dict[Any, Any]) -> str:
    """Return why a reference holds a secret instead of its place, "" if it does not."""
    env, file, command = reference.get("env"), reference.get("file"), reference.get("command")
    if isinstance(env, str) and not ENV_NAME.fullmatch(env) and is_plain_text(env):
        return "env holds something else than the name of a variable"
    if isinstance(file, str) and USER_AND_PASSWORD.fullmatch(file):
        return "file holds something else than a path"
    words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else []
    return _describe_command_leak(words) if words else ""


def _describe_command_leak(words: list[str]) -> str:
    if words[0].rpartition("/")[2] in PRINTERS:
        return "command prints its own words, so the secret is one of them"
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option = PASSWORD_OPTION.fullmatch(word)
        value = (option[1] or following) if option else ""
        if value and is_plain_text(value) and not value.startswith(("-", "$", "/", "@")):
            return "command holds a secret as the value of an option"
        if " " in word and SHELL_PRINT.search(word):
            return "command prints its own words, so the secret is one of them"
    return ""


def _list_references(data: Any) -> Iterator[tuple[tuple[Any, ...], dict[Any, Any]]]:
    """Yield path and mapping of every reference to a secret. Lists of texts are not walked."""
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), data)]
    while waiting:
        path, value = waiting.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value)
        if path and isinstance(value, dict) and value and REFERENCE_NAMES.issuperset(value):
            if any(isinstance(step, str) and classify_name(step) for step in path):
                yield path, value
            continue
        waiting += [((*path, name), entry) for name, entry in items if _may_hold_mappings(entry)]


def _may_hold_mappings(value: Any) -> bool:
    return bool(value) and (type(value) is dict or (type(value) is list and type(value[0]) in (dict, list)))


def _read_text(draft: RepositoryDraft, path: str) -> str:
    try:
        return draft.tree.read(path, MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _find_in_text(text: str, only_comments: bool) -> Iterator[WrittenSecret]:
    """Yield the secrets in a text, at most one a line."""
    for number, line in _list_lines(text):
        comment = COMMENT.search(line)
        judged = comment[1] if only_comments and comment else "" if only_comments else line
        what = _describe_line(judged, comment[1] if comment else "", "" if only_comments else line)
        if what:
            yield WrittenSecret(number, len(line) - len(line.lstrip()) + 1, what)


def _list_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that holds a needle.

    Fifty searches for a text are faster than one pattern, and recordings repeat themselves: no needle has a quote.
    """
    once = '"'.join(set(text.split('"')))
    present = [needle for needle in NEEDLES if needle in once]
    starts = {text.rfind("\n", 0, at) + 1 for needle in present for at in _find_all(needle, text)}
    number, counted = 1, 0
    for start in sorted(starts):
        number += text.count("\n", counted, start)
        counted = start
        yield number, text[start : end if (end := text.find("\n", start)) >= 0 else len(text)]


def _find_all(needle: str, text: str) -> Iterator[int]:
    """Yield the first place of a needle on each line."""
    at = text.find(needle)
    while at >= 0:
        yield at
        end = text.find("\n", at)
        at = text.find(needle, end) if end >= 0 else -1


def _describe_line(text: str, comment: str, code: str) -> str:
    """Return what a line holds: a known shape in the text, a secret told in the comment, or one given by the code."""
    if not any(needle in text for needle in NEEDLES):
        return ""
    shape = find_secret_shape(text, SECRET_SHAPES)
    if shape is not None:
        return f"the line holds {shape.what}"
    if any(_is_told(name, value) for name, value in TOLD.findall(comment)):
        return "the comment holds a secret in plain text"
    pairs = [*ASSIGNED.findall(code), *YAML_PAIR.findall(code)]
    if any(classify_name(name) is SecretHint.CERTAIN and _looks_chosen(value) for name, value in pairs):
        return "the line holds a secret in plain text"
    return ""


def _is_told(name: str, value: str) -> bool:
    return classify_name(name.replace(" ", "_")) is SecretHint.CERTAIN and _looks_chosen(value)


def _looks_chosen(value: str) -> bool:
    """Whether a text looks like a password that somebody chose or made, and not like a word, a path or a variable."""
    if not is_plain_text(value) or len(value) < 6 or value.startswith(("$", "<", "/", "~", ".", "{", "%", "ssh-")):
        return False
    if any(sign in value for sign in "(){}[]<> ") or "://" in value or re.fullmatch(r"[A-Z][A-Z0-9_]*|[a-z_.]+", value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^A-Za-z0-9_.:/-]"))
    return kinds >= 3 or (kinds == 2 and bool(re.search(r"\d", value)) and len(value) >= 8) or looks_random(value)
