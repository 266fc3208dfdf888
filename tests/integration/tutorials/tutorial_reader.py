"""The reader of a tutorial: does what its pages say, in a folder of its own; for real machines, a site stands."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from assay.declare.loader import load_fleet
from tests.integration.fleet_site.bmc_recording import DOMAIN
from tests.integration.fleet_site.rehearsed_site import Site, choose_places, run_site
from tests.integration.tutorials.newcomer_box import open_page
from tests.integration.tutorials.tutorial import ANY, TutorialCommand, TutorialFile

PRINTED_NETWORK = "10.0.7"
"""The network of the BMCs on the pages; the last number is that of the machine."""
DAY_HOURS = (0.0, 6.0, 6.0, 12.0)
"""How a day of `assay reconcile` is compressed: hours before each session."""
BREAKS_IN = 1
"""The session in which a GPU of the site falls off its bus."""
SESSION_S = 300.0


class Reader:
    """Does what the pages say, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        person = {
            f"GIT_{who}_{what}": "reader@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("ASSAY_", "PYTEST_"))}
        self.environment = {**kept, **person, "PATH": path, "COLUMNS": "160"}

    def do(self, step: TutorialFile | TutorialCommand) -> None:
        """Do a step, and compare what it shows."""
        if isinstance(step, TutorialFile):
            (self.folder / step.path).write_text(step.text)
        elif step.words.startswith("cd "):
            self.folder /= step.words.removeprefix("cd ")
        elif step.words == "assay serve":
            assert "n0002" in open_page(str(self.folder), self.environment)
        else:
            done = self.run(step.words)
            assert done.returncode == 0, f"$ {step.words}\n{done.stdout}{done.stderr}"
            assert step.is_answer(done.stdout), f"$ {step.words}\n{done.stdout}\nbut the page shows:\n{step.shown}"

    def run(self, words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            ["bash", "-c", words], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )


class SiteReader(Reader):
    """A reader whose pages lead to real machines: from `assay context fleet` on, the site's."""

    def __init__(self, folder: Path, site_folder: Path, machines: Sequence[str]) -> None:
        for path in (folder, site_folder, home := site_folder.with_name("home")):
            path.mkdir()
        super().__init__(folder)
        self._site_folder, self._home = site_folder, home
        self._places = choose_places(site_folder, machines)
        self._running, self._output = ExitStack(), ""
        self.site: Site

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.run("assay lab down")
        self._running.close()

    def do(self, step: TutorialFile | TutorialCommand) -> None:
        """Do a step. What stands for something else on the page: addresses, a day, and an id that a person copies."""
        if isinstance(step, TutorialFile):
            return super().do(replace(step, text=self._with_addresses(step.text)))
        if step.words == "assay context fleet":
            self._start_site()
        if step.words == "assay reconcile":
            return self._watch_a_day(step)
        if step.words.startswith(f"assay approve {ANY}"):
            (ident,) = re.findall(r"assay approve (\w+)", self._output)
            step = replace(step, words=step.words.replace(ANY, ident, 1))
        return super().do(step)

    def run(self, words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, and remember what it printed."""
        done = super().run(words)
        self._output = done.stdout
        return done

    def _with_addresses(self, text: str) -> str:
        for number, (address, port) in enumerate(self._places.bmcs.values(), 1):
            printed = f"bmc_address: {PRINTED_NETWORK}.{number}\n"
            text = text.replace(printed, f"bmc_address: {address}\n      bmc_port: {port}\n")
        return text

    def _start_site(self) -> None:
        """Start the machines that the repository describes, once the names of the example are the site's own."""
        declared = self._site_folder.with_name("declared")
        shutil.copytree(self.folder, declared, ignore=shutil.ignore_patterns(".git", ".assay*", "reports"))
        for spec in (declared / "specs" / "nodes").glob("*.yaml"):
            spec.write_text(spec.read_text().replace("lab1.example", DOMAIN))
        self.site = self._running.enter_context(run_site(self._site_folder, self._places, load_fleet(declared)))
        shutil.copy(self._places.ca, self._home / "bmc-ca.pem")
        self.environment = self.site.environment("reader", HOME=str(self._home))

    def _watch_a_day(self, step: TutorialCommand) -> None:
        """Type the command, leave it running for a round, and end it by Ctrl-C, several times a day."""
        for session, hours in enumerate(DAY_HOURS):
            self.site.advance(hours)
            if session == BREAKS_IN:
                self.site.break_part("gpu.xid", "gpu-02", gpu=2, xid=79)
            watching = subprocess.Popen(
                ["bash", "-c", f"exec {step.words}"],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            ends = time.monotonic() + SESSION_S
            while not (self._has_judged(session) and (session != BREAKS_IN or self._has_decided())):
                assert watching.poll() is None, watching.communicate()[0]
                assert time.monotonic() < ends, "it did not come to the end of a round"
                time.sleep(1)
            watching.send_signal(signal.SIGINT)
            output, _ = watching.communicate(timeout=SESSION_S)
            assert step.is_answer(output), output

    def _has_judged(self, earlier: int) -> bool:
        """Whether one more run of checks than `earlier` has ended."""
        runs = [run for run in (self.folder / "reports" / "runs").glob("*") if (run / "run.sqlite").exists()]
        return len(runs) > earlier and not any((run / "lock").exists() for run in runs)

    def _has_decided(self) -> bool:
        """Whether the record of what assay would have done is no longer empty."""
        return bool(json.loads(self.run("assay status --format json").stdout)["trust"]["watched"]["decisions"])
