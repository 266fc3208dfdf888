"""Recorders in the place of every program on the path: each notes who called it and how, then runs the program.

A program that is not installed has a recorder too if assay may call it to reach a machine: it notes, and fails.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "SITE_MARK"
"""The variable that holds the name of the command that a test runs."""
REACHING = frozenset(
    {"ssh", "scp", "sftp", "rsync", "pdsh", "clush", "mpirun", "mpiexec", "kubectl", "helm", "ipmitool", "ping"}
    | {"srun", "sbatch", "salloc", "scontrol", "squeue", "sinfo", "sacct", "scancel", "sdiag", "sacctmgr"}
    | {"curl", "wget", "ibdiagnet", "perfquery", "smpquery", "sendmail"}
)
"""Programs by which this machine reaches others. No rehearsal has a reason to call one of them."""
READING_SLURM = {"squeue", "sinfo", "sacct", "sdiag"}
LEFT_ALONE = frozenset({"sh", "bash", "dash", "env", "python", "python3"})
"""Interpreters: what they run is recorded by what it calls, and a recorder is a script of one of them."""

_RECORDER = """\
#!/bin/sh
name=${{0##*/}}
printf '%s\\037%s\\037%s\\037%s\\036' "${mark}" "$ASSAY_CONTEXT" "$name" "$*" >> {log}
case $name in
ssh) exec {ssh} -F {ssh_config} -o SendEnv={mark} "$@" ;;
esac
IFS=:
for folder in $PATH; do
  [ "$folder" = {folder} ] || [ ! -x "$folder/$name" ] || {{ unset IFS; exec "$folder/$name" "$@"; }}
done
echo "$name: this site has no such program" >&2
exit 127
"""


@dataclass(frozen=True)
class ProgramCall:
    """A program that a command called; `context` is what $ASSAY_CONTEXT was."""

    mark: str
    context: str
    name: str
    words: str

    @property
    def reaches_machines(self) -> bool:
        """Whether the program is one that reaches other machines."""
        return self.name in REACHING

    @property
    def is_change(self) -> bool:
        """Whether it may change something there. What ssh does, sshd itself notes."""
        if self.name == "ssh" or self.name in READING_SLURM:
            return False
        if self.name == "scontrol":
            return "update" in self.words.split() or "reboot" in self.words.split()
        return self.reaches_machines and self.words not in {"--version", "-V", "version"}


class RecorderPrograms:
    """The recorders in `folder`, and what they noted."""

    def __init__(self, folder: Path, ssh_config: Path) -> None:
        self.folder, self._log = folder, folder.with_suffix(".log")
        self._log.touch()
        folder.mkdir()
        recorder = folder.with_suffix(".recorder")
        words = {"log": self._log, "ssh": shutil.which("ssh") or "ssh", "ssh_config": ssh_config, "folder": folder}
        recorder.write_text(
            _RECORDER.format(mark=MARK, **{name: shlex.quote(str(word)) for name, word in words.items()})
        )
        recorder.chmod(0o755)
        for name in sorted({*_list_programs(), *REACHING} - LEFT_ALONE):
            (folder / name).symlink_to(recorder)

    @property
    def path(self) -> str:
        """The value of $PATH that finds the recorders first."""
        return os.pathsep.join([str(self.folder), str(Path(sys.executable).parent), os.environ["PATH"]])

    def calls(self) -> list[ProgramCall]:
        """Return all calls, oldest first."""
        entries = self._log.read_text(errors="replace").split("\036")[:-1]
        return [ProgramCall(*entry.split("\037", 3)) for entry in entries]


def _list_programs() -> Iterator[str]:
    for folder in {str(Path(sys.executable).parent), *os.environ["PATH"].split(os.pathsep)}:
        if folder and Path(folder).is_dir():
            yield from (entry.name for entry in os.scandir(folder) if entry.is_file() and os.access(entry, os.X_OK))
