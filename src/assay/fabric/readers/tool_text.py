"""What the readers of all tools need: JSON of any shape, and the signs of a text that lost a part.

Such signs are an error on stderr, no last line feed, or a gap in the port numbers of a tool that lists every port.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from assay.fabric.discovery import LocalProblem

FOREIGN = re.compile(r"(?m)^(?![ \t]*(?:[\"{}\],]|\[\s*(?:[\[{\"\]\d-]|$)|-?\d|true|false|null)).*\S.*$")
"""A line that cannot stand in JSON, such as a prompt (`[root@head ~]# cat links.json`)."""
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
CLOSING = {"[": "]", "{": "}"}
MAX_LINE_LENGTH = 4096
NO_ANSWER = re.compile(
    r"time[d ]*out|bad status|fail|error|abort|incomplete|unreachable|invalid|unable|can't|cannot"
    r"|ib(?:warn|panic): (?!\[\d+\] sim_connect: attached)",
    re.IGNORECASE,
)
"""What libibmad, libibumad and ssh print when an answer is missing. ibsim's greeting is not such a line."""
PRODUCT = re.compile(r".*:([\w-]+)(?:/[A-Z]+[0-9]+)?/U[0-9]+")
SWITCHLIKE = re.compile(r"MF0;|.*:[\w-]+/U[0-9]+$|Quantum|SwitchIB|Switch-IB|Infiniscale|SwitchX")
"""How switches describe themselves: managed ones, and others by default."""
PORTS_OF_PRODUCT: Mapping[str, set[int]] = {
    "MQM9700": {64, 65, 128, 129},
    "MQM9790": {64, 65, 128, 129},
    "MQM8700": {40, 41, 80, 81},
    "MQM8790": {40, 41, 80, 81},
    "MSB7700": {36},
    "MSB7780": {36},
    "MSB7790": {36},
    "MSB7800": {36, 37},
    "MSB7890": {36, 37},
    "SX6036": {36},
}
"""The number of ports of a product, whole or split, with and without the aggregation node's (NVIDIA's manuals)."""


def load_json(text: str, problems: list[str], notes: list[str] | None = None) -> Any:
    """Return the document, or None and a problem if it cannot be read. A name that occurs twice is a problem too.

    Foreign lines are skipped, and `notes` names them; without it they are problems. Of a text that was cut off, the
    entries that are whole are returned, with a problem.
    """
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            twice.extend(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        return entries

    try:
        document = _load(text, once, problems, problems if notes is None else notes)
    except (ValueError, RecursionError) as error:
        problems.append(f"this is not whole JSON: {str(error)[:120]}")
        return None
    problems += [f"{name[:40]!r} occurs twice in one object" for name in dict.fromkeys(twice)]
    return document


def _load(text: str, hook: Callable[[list[tuple[str, Any]]], Any], problems: list[str], notes: list[str]) -> Any:
    try:
        return json.loads(text, object_pairs_hook=hook)
    except ValueError:
        plain = FOREIGN.sub("", text)
    whole = plain.strip()
    cut = _cut_at_whole_entry(whole)
    try:
        document = json.loads(whole, object_pairs_hook=hook)
    except ValueError:
        if not cut:
            raise
        document = json.loads(cut, object_pairs_hook=hook)
        problems.append("this is not whole JSON: the text was cut off, and only the entries before that were read")
    notes += [
        f"line {text.count(chr(10), 0, foreign.start()) + 1} is no JSON and was skipped: {foreign[0].strip()[:80]!r}"
        for foreign in FOREIGN.finditer(text)
    ]
    return document


def _cut_at_whole_entry(text: str) -> str:
    """Return a text that was cut off up to its last whole entry of a list, with all brackets closed; "" without one."""
    opened: list[str] = []
    end, to_close = 0, ""
    for token in TOKEN.finditer(text):
        if token[0] in CLOSING:
            opened.append(token[0])
        elif token[0] in "]}" and opened:
            opened.pop()
            if token[0] == "}" and opened and opened[-1] == "[":
                end, to_close = token.end(), "".join(CLOSING[each] for each in reversed(opened))
    return text[:end] + to_close if opened else ""


def find_stderr_problems(stderr: str) -> list[str]:
    """Return a problem for each line of stderr that reports a missing answer."""
    return [f"stderr: {line.strip()}" for line in stderr.splitlines() if NO_ANSWER.search(line)]


def find_truncation(text: str) -> list[str]:
    """Return a problem if the last line has no line feed. Needed for formats in which a number may end a line."""
    return ["the last line has no end: the text was cut off"] if text and not text.endswith("\n") else []


def number_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, stripped, with their numbers. A line longer than any tool writes is cut to 80 characters.

    Regular expressions with several repetitions take very long on a very long line.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        yield number, line.strip() if len(line) <= MAX_LINE_LENGTH else f"{line[:80].strip()} …"


def find_product(description: str) -> str:
    """Return the product that a switch names in its description, "" if it names none."""
    match = PRODUCT.fullmatch(description)
    return match[1] if match else ""


def find_port_gaps(numbers: Mapping[str, set[int]]) -> list[str]:
    """Return a problem for each switch whose listed port numbers have a gap. `numbers` are by GUID."""
    return [
        LocalProblem(f"{guid} does not list port {min(missing)}", guid)
        for guid, listed in numbers.items()
        if (missing := set(range(1, max(listed, default=0) + 1)) - listed)
    ]


def find_truncated_switches(
    suspects: Iterable[str], numbers: Mapping[str, set[int]], products: Mapping[str, str]
) -> list[str]:
    """Return a problem for each suspect switch that may have ports after the last listed one.

    A switch has as many ports as its product. If the product is not known here, it has as many as another one of it.
    """
    highest = {guid: max(listed, default=0) for guid, listed in numbers.items()}
    problems: list[str] = []
    for guid in suspects:
        ports, product = highest[guid], products[guid]
        of_same = [highest[other] for other, own in products.items() if own == product and other != guid]
        known = PORTS_OF_PRODUCT.get(product, set())
        if known and ports not in known and ports not in of_same:
            problems.append(LocalProblem(f"{guid} lists {ports} ports, but a {product} has {min(known)} or more", guid))
        elif not known and ports < max(of_same, default=ports + 1):
            problem = f"{guid} lists {ports} ports; nothing shows whether that is all of them"
            problems.append(LocalProblem(problem, guid))
    return problems
