"""The tools of a virtual node refuse what the real ones refuse, with their exit codes.

Where the real program is installed, it is asked: it has each option that the stand-in takes, and it ends with the same
code at one that it does not have.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.lab.node.shell import FILE_PRINTERS, SCRIPTS, TOOLS, install_tools
from assay.lab.tools.command_lines import check_words, read_command_lines
from tests.support.places import ROOT

ENTRIES = read_command_lines()
ITSELF = {"assay-load"}  # the real one, by its own parser
UNKNOWN = "--no-such-option"
CLOSED = {"ubergemm"}
HELP = {
    "fio": ["fio", "--cmdhelp=all"],
    "ib_write_bw": ["ib_write_bw", "--help"],
    "mstconfig": ["mstconfig", "-h"],
    "nvidia-bug-report.sh": ["nvidia-bug-report.sh", "--help"],
    "nvme format": ["nvme", "format", "--help"],
    "nvme sanitize": ["nvme", "sanitize", "--help"],
    "nvme sanitize-log": ["nvme", "sanitize-log", "--help"],
    "stress-ng": ["stress-ng", "--help"],
    "stressapptest": ["stressapptest", "--help"],
    "update-grub": ["grub-mkconfig", "--help"],
}
"""How a real program tells its options."""
NOT_IN_DEBIAN = {"--use_cuda"}  # a build option of perftest
WITH_FORMS = sorted({name for name, entry in ENTRIES.items() if "forms" in entry})
GOOD = {
    "all_reduce_perf": ["-b", "1G", "-e", "8G", "-f", "2", "-g", "8", "-c", "1", "-J", "/tmp/report.json"],
    "nvidia-smi": ["-pm", "1"],
    "nvme format": ["/dev/nvme0n1", "--ses=1", "--force", "--timeout=3600000"],
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_tools(tmp_path_factory.mktemp("tools"))


def find_program(tool: str) -> str:
    program = shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if not program:
        pytest.skip(f"{tool} is not installed: sh tools/system-packages as root")
    return program


def test_each_tool_says_which_lines_it_takes_and_where_that_stands() -> None:
    tools = {*TOOLS, *SCRIPTS, *FILE_PRINTERS} - ITSELF
    assert tools == {name.split()[0] for name in ENTRIES}
    for name, entry in ENTRIES.items():
        assert re.search(r"\d.*, https://\S+$", entry["source"]) or name in CLOSED, name
        code, stream, text = entry["refuses"]
        assert (type(code), stream in ("stdout", "stderr"), bool(text)) == (int, True, True), name


@pytest.mark.parametrize("tool", [name for name in ENTRIES if name != "all_reduce_perf"])
def test_a_tool_refuses_an_option_that_it_does_not_have(tool: str, programs: Path, tmp_path: Path) -> None:
    code, stream, text = ENTRIES[tool]["refuses"]
    name, *words = tool.split()
    environment = {"PATH": "/usr/bin:/bin", "ASSAY_ROOT": str(tmp_path)}
    command = [programs / name, *words, *GOOD.get(tool, [])[:2], UNKNOWN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, getattr(done, stream)) == (code, text.replace("{word}", UNKNOWN) + "\n")


def test_all_reduce_perf_prints_its_usage_and_ends_well_as_the_real_one(programs: Path, tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "ASSAY_ROOT": str(tmp_path)}
    done = subprocess.run(
        [programs / "all_reduce_perf", UNKNOWN], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "USAGE" in done.stdout, "Avg bus" in done.stdout) == (0, True, False)


@pytest.mark.parametrize(
    ("tool", "words", "refused"),
    [
        ("all_reduce_perf", ["-g", "eight"], "-g"),
        ("all_reduce_perf", ["-J", "report.txt"], "-J"),
        ("all_reduce_perf", ["-g"], "-g"),
        ("dcgmi", ["diag", "-r", "3", "--timeout", "60s"], "--timeout"),
        ("dcgmi", ["diag", "-r", "3", "-j=1"], "-j=1"),
        ("dcgmi", ["mndiag", "-r", "3"], "-r"),
        ("gpu-fryer", ["--json", "5"], "5"),
        ("gpu_burn", ["1m"], "1m"),
        ("mstconfig", ["-d", "eth0", "query"], "-d"),
        ("nvidia-smi", ["-c", "EXCLUSIVE"], "-c"),
        ("nvidia-smi", ["-ac", "2619"], "-ac"),
        ("nvme", ["format", "/dev/nvme0n1", "--ses=3"], "--ses=3"),
        ("nvme", ["sanitize", "/dev/nvme0", "--sanact=crypto"], "--sanact=crypto"),
        ("nvbandwidth", ["-j=1"], "-j=1"),
        ("fio", ["--name=x", "--rw"], "--rw"),
    ],
)
def test_a_value_in_another_form_is_refused(
    tool: str, words: list[str], refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = ENTRIES.get(f"{tool} {words[0]}") or ENTRIES[tool]
    with pytest.raises(SystemExit) as ended:
        check_words(tool, words)
    printed = capsys.readouterr()
    assert ended.value.code == entry["refuses"][0]
    assert entry["refuses"][2].replace("{word}", refused) in printed.out + printed.err


def test_an_option_is_taken_by_each_of_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--run=3", "-j", "--timeout", "60"], ["-r", "3", "--json", "-t", "60"], ["--run", "3"], []):
        check_words("dcgmi", ["diag", *words])
    assert capsys.readouterr() == ("", "")


def test_the_unit_of_gpu_settings_calls_nvidia_smi_as_it_may_be_called() -> None:
    folder = "playbooks/collections/ansible_collections/assay/fleet/roles/gpu_settings/tasks/main.yml"
    tasks: Any = yaml.safe_load((ROOT / folder).read_text())
    lines = re.findall(r"ExecStart=-nvidia-smi (\S+) (.+)", str(tasks).replace("\\n", "\n"))
    assert [option for option, _ in lines] == ["-pm", "-mig", "-c", "-ac", "-pl"]
    for option, _ in lines:
        check_words("nvidia-smi", [option, "2619,1980" if option == "-ac" else "1"])


@pytest.mark.parametrize("tool", sorted(HELP))
def test_the_real_program_has_each_option_of_its_stand_in(tool: str) -> None:
    program, *words = HELP[tool]
    done = subprocess.run([find_program(program), *words], capture_output=True, text=True, check=False)
    shown = done.stdout + done.stderr
    names = {name for option in ENTRIES[tool]["options"] for name in option.split()} - NOT_IN_DEBIAN
    if tool == "fio":  # its options are the parameters of a job, and a few of its own
        shown += subprocess.run([program, "--help"], capture_output=True, text=True, check=False).stdout
        shown = shown.replace("--", " ")
        names = {name.removeprefix("--") for name in names}
    missing = {name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", shown)}
    assert missing == set()


@pytest.mark.parametrize("tool", sorted({*HELP, *WITH_FORMS} - {"nv-fabricmanager"}))
def test_the_real_program_refuses_with_the_same_code(tool: str) -> None:
    name, *words = tool.split()
    done = subprocess.run(
        [find_program(name), *words, UNKNOWN], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == ENTRIES[tool]["refuses"][0], done.stderr
