"""How lines become one: what tools, pages and shells write in place of the end of a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

JOINS: dict[str, Callable[[Sequence[str]], str]] = {
    "carriage returns": lambda lines: "\r".join(lines) + "\r",
    "two carriage returns": "\r\r\n".join,
    "newline and carriage return": "\n\r".join,
    "one carriage return within": lambda lines: "\n".join(lines[:2]) + "\r" + "\n".join(lines[2:]),
    "rsyslog": "#012".join,
    "rsyslog with carriage return": "#015#012".join,
    "escaped": r"\n".join,
    "escaped twice": r"\\n".join,
    "a text in YAML": lambda lines: 'kind: Event\nmessage: "' + r"\n".join(lines) + '"\n',
    "JSON in JSON": lambda lines: json.dumps({"log": json.dumps("\n".join(lines)), "stream": "stdout"}) + "\n",
    "HTML breaks": "<br>".join,
    "HTML breaks of XHTML": "<br />\n".join,
    "rows of a table": lambda lines: "".join(f"<tr><td>{line}</td></tr>" for line in lines),
    "form feeds": "\f".join,
    "NUL": "\0".join,
    "blanks": " ".join,
    "nothing": "".join,
}
