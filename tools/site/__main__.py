"""`python -m tools.site FOLDER`: build the site into FOLDER. Broken links and pages without a place are errors."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.site.pages import gather_pages

ROOT = Path(__file__).parents[2]
NO_ADVERTISEMENT = {"NO_MKDOCS_2_WARNING": "1"}


def main(folder: Path) -> int:
    """Build the site, and return the exit code of mkdocs. What it warns of is on stderr: it must not run with `-q`."""
    with tempfile.TemporaryDirectory() as home:
        gather_pages(ROOT, Path(home, "docs"))
        config = Path(home, "mkdocs.yml")
        config.write_text((ROOT / "mkdocs.yml").read_text())
        build = [sys.executable, "-m", "mkdocs", "build", "--strict"]
        where = ["--config-file", str(config), "--site-dir", str(folder)]
        return subprocess.run([*build, *where], env=os.environ | NO_ADVERTISEMENT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
