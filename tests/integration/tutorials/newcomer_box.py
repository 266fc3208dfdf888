"""A machine that has nothing but Python: no other program can be found there, and its home is empty.

Runs commands there in order, given as JSON on stdin: {"commands": [[FOLDER, WORD…]…]}. Prints a JSON list of what each
gave: {"code", "out"}. The command `open-page` asks `assay serve` for its first page.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

HOME = "/home/newcomer"


def bwrap_words(home: Path) -> list[str]:
    """Return the words that run a program in the machine. `home` holds its home, which is kept."""
    python = sys.base_prefix
    kept = {name: text for name, text in os.environ.items() if name.startswith("PIP_") or "PROXY" in name.upper()}
    variables = {**kept, "HOME": HOME, "PATH": f"{HOME}/venv/bin:{python}/bin", "LANG": "C.UTF-8"}
    shown = [word for path in ("/usr/lib", "/usr/lib64", "/etc") for word in ("--ro-bind-try", path, path)]
    return [
        *("bwrap", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--clearenv"),
        *shown,
        *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
        *(word for path in pip_folders() for word in ("--ro-bind-try", path, path)),
        *(
            "--ro-bind",
            python,
            python,
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "--bind",
            str(home),
            HOME,
        ),
        *(word for name, text in variables.items() for word in ("--setenv", name, text)),
    ]


def pip_folders() -> list[str]:
    """Return the folders that pip's own configuration names: wheels that lie on the disk."""
    asked = [sys.executable, "-m", "pip", "config", "list"]
    settings = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return sorted({part for line in settings.splitlines() for part in line.split("'")[1::2] if part.startswith("/")})


def open_page(folder: str, environment: dict[str, str] | None = None) -> str:
    """Return the first page that `assay serve` shows, on a port that is free, to who has the token that it names."""
    served = subprocess.Popen(
        ["assay", "serve", "--port", "0"], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert served.stderr
    try:
        address = next(line for line in served.stderr if "http://" in line).partition("http://")[2].split()[0]
        file = next(line for line in served.stderr if "log in with the token in" in line).rpartition(" in ")[2].strip()
        token = Path(file).read_text().strip()
        request = urllib.request.Request(f"http://{address}", headers={"Authorization": f"Bearer {token}"})
        return urllib.request.urlopen(request).read().decode()
    finally:
        served.terminate()
        served.communicate()


def run(folder: str, *words: str) -> dict[str, object]:
    """Run a command to its end."""
    if words == ("open-page",):
        return {"code": 0, "out": open_page(folder)}
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return {"code": done.returncode, "out": done.stdout + done.stderr}


if __name__ == "__main__":
    json.dump([run(*command) for command in json.load(sys.stdin)["commands"]], sys.stdout)
