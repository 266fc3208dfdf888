"""`assay console` shows what was recorded, and writes conserver.cf without a login."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from assay.cli.app import app
from assay.model.errors import AssayError

LOGIN = {"file": "/etc/assay/bmc.login"}
Call = Callable[..., Any]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return a function that calls `assay console` in a new fleet, whose inventory it may change before."""
    monkeypatch.setenv("ASSAY_CONTEXT", "fleet")
    fleet = tmp_path / "fleet"
    assert CliRunner().invoke(app, ["init", str(fleet)]).exit_code == 0

    def run(*words: str, **console: Any) -> Any:
        if console:
            inventory = next((fleet / "inventory").glob("*.yml"))
            declared = yaml.safe_load(inventory.read_text())
            declared["h100-a"]["vars"] |= console
            inventory.write_text(yaml.safe_dump(declared))
        answer = CliRunner().invoke(app, ["console", *words, "--fleet", str(fleet)])
        if isinstance(answer.exception, AssayError):
            raise answer.exception
        return answer

    return run


@pytest.mark.parametrize(
    ("login", "console", "command"),
    [
        (LOGIN, {}, 'login=$(head -n1 /etc/assay/bmc.login); user="${login%%:*}"; password="${login#*:}"; SSHPASS='),
        ({"env": "ASSAY_BMC"}, {}, "login=$(printenv ASSAY_BMC); "),
        ({"command": ["pass", "show", "the bmc"]}, {}, "pass show 'the bmc' | head -n1); "),
        (LOGIN, {}, '-p 2200 -l "$user" 10.20.0.11 || :; sleep 60'),
        (
            LOGIN,
            {"port": 22, "command": ["console", "com2"]},
            '-p 22 -l "$user" 10.20.0.11 console com2 || :; sleep 60',
        ),
        (LOGIN, {"way": "ipmi"}, 'ipmitool -I lanplus -E -U "$user" -H 10.20.0.11 -p 623 sol activate || :; sleep 60'),
        (
            LOGIN,
            {"way": "program", "command": ["telnet", "serial server", "7003"]},
            "; telnet 'serial server' 7003 || :",
        ),
    ],
)
def test_each_way_becomes_a_console_of_conserver(call: Call, login: Any, console: Any, command: str) -> None:
    text = call("--conserver", bmc_credentials=login, bmc_console=console).output
    assert text.count("\nconsole n000") == 4
    assert command in text.replace('\\"', '"')


def test_without_a_console_or_a_login_that_conserver_can_read_it_says_so(call: Call) -> None:
    with pytest.raises(AssayError, match="no node has a console to record"):
        call("--conserver")
    with pytest.raises(AssayError, match="conserver cannot read the login"):
        call("--conserver", bmc_credentials=None, bmc_console={})
    with pytest.raises(AssayError, match="name a node, or ask"):
        call()
    with pytest.raises(AssayError, match="there is no node n9999"):
        call("n9999")
    with pytest.raises(AssayError, match="nothing is recorded of the console of n0001"):
        call("n0001")


@pytest.mark.skipif(not shutil.which("conserver", path="/usr/sbin:/usr/bin"), reason="install conserver-server")
def test_conserver_itself_takes_the_file(call: Call, tmp_path: Path) -> None:
    import subprocess

    file = tmp_path / "conserver.cf"
    file.write_text(call("--conserver", bmc_credentials=LOGIN, bmc_console={"command": ['say "#;{}" \\ twice']}).output)
    words = ["/usr/sbin/conserver", "-S", "-S", "-C", str(file)]
    seen = subprocess.run(words, capture_output=True, text=True, check=False)
    assert seen.returncode == 0, seen.stdout + seen.stderr
    assert seen.stdout.count("{n000") == 4, seen.stdout
    assert "'say \"#;{}\" \\ twice'" in seen.stdout
    assert "ERROR" not in seen.stdout + seen.stderr


def test_what_was_recorded_is_shown_as_text_and_as_json(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "fleet/.assay/consoles"
    folder.mkdir(parents=True)
    (folder / "n0001.log").write_text("[Tue Dec  1 04:31:45 2026]panic \u202e\n[Tue Dec  1 04:31:46 2026]reboot\n")
    assert call("n0001").output.splitlines() == [
        "[2026-12-01T04:31:45+00:00] panic \\u202e",
        "[2026-12-01T04:31:46+00:00] reboot",
    ]
    assert json.loads(call("n0001", "--grep", "REBOOT", "--format", "json").stdout)["lines"] == [
        {"at": "2026-12-01T04:31:46+00:00", "text": "reboot"}
    ]
    missing = call("n0001", "--grep", "oops")
    assert (missing.exit_code, missing.stdout) == (1, "no line has this\n")
