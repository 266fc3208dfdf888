"""Every reader of strange bytes under a fuzzer that follows its code: readings or a person's words, nothing else."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.fuzz.readers_of_strangers import READERS, SAMPLES
from tests.support.places import ROOT

SECONDS = 6
PATIENCE_S = 240  # others load this machine


@pytest.mark.parametrize("name", READERS)
def test_every_seed_of_a_reader_is_read(name: str) -> None:
    read = READERS[name].make()
    for seed in READERS[name].seeds:
        read((SAMPLES / seed).read_bytes())


@pytest.mark.slow(minutes=2)
@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is not installed: it has no wheel here"
)
@pytest.mark.parametrize("name", READERS)
def test_nothing_that_a_fuzzer_finds_breaks_a_reader(name: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for seed in READERS[name].seeds:
        shutil.copy(SAMPLES / seed, corpus)
    command = [sys.executable, "-m", "tests.integration.fuzz.readers_of_strangers", name, str(corpus), str(SECONDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    broke = [path.read_bytes()[:400] for path in tmp_path.glob("broke-*")]
    assert done.returncode == 0, f"{broke}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Done " in done.stderr, "it ran to its end"
