"""Finds the signs of a text that lost a part: an error on stderr, no last line feed, a gap in the port numbers.

Tools that list every port of a switch, cabled or not, show a missing part by a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from assay.fabric.reading_problems import LocalProblem

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
    "MQM9700": {64, 65, 128, 129}, "MQM9790": {64, 65, 128, 129}, "MQM8700": {40, 41, 80, 81},
    "MQM8790": {40, 41, 80, 81}, "MSB7700": {36}, "MSB7780": {36}, "MSB7790": {36}, "MSB7800": {36, 37},
    "MSB7890": {36, 37}, "SX6036": {36},
}  # fmt: skip
"""The number of ports of a product, whole or split, with and without the aggregation node's (NVIDIA's manuals)."""


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
    found = PRODUCT.fullmatch(description)
    return found[1] if found else ""


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
        of_same = [highest[other] for other, its in products.items() if its == product and other != guid]
        known = PORTS_OF_PRODUCT.get(product, set())
        if known and ports not in known and ports not in of_same:
            problems.append(LocalProblem(f"{guid} lists {ports} ports, but a {product} has {min(known)} or more", guid))
        elif not known and ports < max(of_same, default=ports + 1):
            what = f"{guid} lists {ports} ports; nothing shows whether that is all of them"
            problems.append(LocalProblem(what, guid))
    return problems
