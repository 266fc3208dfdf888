"""What a service says on stderr: lines for people, or JSON lines for a collector of logs. Libraries log there, too."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Annotated, Literal

from assay.cli.options import HOW, option
from assay.model.text.safe_text import redact

LogForm = Literal["text", "json"]
LogFormat = Annotated[
    LogForm,
    option(
        "--log-format",
        "What stderr gets: text for people, json for a line with time, level and message each.",
        group=HOW,
        envvar="ASSAY_LOG_FORMAT",
        show_default=False,
    ),
]


class TextFormatter(logging.Formatter):
    """`assay VERB: message`; a step of the work, which is at the level debug, as `· step`."""

    def __init__(self, verb: str) -> None:
        super().__init__()
        self._verb = verb

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        text = redact(record.getMessage())
        return f"· {text}" if record.levelno == logging.DEBUG else f"assay {self._verb}: {text}"


class JsonFormatter(logging.Formatter):
    """An object a line: `at` (UTC), `level`, `verb`, `logger`, `message`, and `traceback` where there is one."""

    def __init__(self, verb: str) -> None:
        super().__init__()
        self._verb = verb

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "verb": self._verb,
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if record.exc_info:
            fields["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(fields)


class StderrHandler(logging.Handler):
    """Prints each record on what is stderr then."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        print(self.format(record), file=sys.stderr, flush=True)  # noqa: T201 — the log


def open_service_log(verb: str, form: LogForm) -> logging.Logger:
    """Let all logs of this process go to stderr in this form, and return the verb's own."""
    handler = StderrHandler()
    handler.setFormatter(JsonFormatter(verb) if form == "json" else TextFormatter(verb))
    root = logging.getLogger()
    for other in [other for other in root.handlers if isinstance(other, StderrHandler)]:
        root.removeHandler(other)
    root.addHandler(handler)
    log = logging.getLogger(f"assay.{verb}")
    log.setLevel(logging.DEBUG)
    return log


def has_json_log() -> bool:
    """Whether what this process says on stderr is JSON."""
    handlers = [handler for handler in logging.getLogger().handlers if isinstance(handler, StderrHandler)]
    return any(isinstance(handler.formatter, JsonFormatter) for handler in handlers)


def report_error(text: str) -> bool:
    """Log what ends the process, where its log is JSON; return whether it is."""
    if has_json_log():
        logging.getLogger("assay").error(text)
        return True
    return False
