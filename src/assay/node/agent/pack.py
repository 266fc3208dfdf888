"""`python -m assay.node.agent.pack OUT`: the agent and the probe as one file; `python3 -I OUT` runs it on a node."""

from __future__ import annotations

import argparse
from pathlib import Path

from assay.node.probe.pack import SHEBANG, build_pack

ENTRY = "assay.node.agent.__main__"
SLURM_HOOK = "assay.node.agent.slurm_hook"
JOIN = "assay.node.agent.node_join"


def main() -> None:
    """Write the file and print its size."""
    parser = argparse.ArgumentParser("python -m assay.node.agent.pack", description="Write the agent as one file.")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--with-nvml", action="store_true", help="for nodes that have no nvidia-ml-py")
    parser.add_argument("--slurm-hook", action="store_true", help="Slurm's hooks instead of the agent")
    parser.add_argument("--join", action="store_true", help="the program that fetches the node's secrets instead")
    arguments = parser.parse_args()
    entry = SLURM_HOOK if arguments.slurm_hook else JOIN if arguments.join else ENTRY
    content = SHEBANG + build_pack(entry, with_nvml=arguments.with_nvml)
    arguments.out.write_bytes(content)
    print(f"{arguments.out}: {len(content)} bytes")  # noqa: T201 — the answer


if __name__ == "__main__":
    main()
