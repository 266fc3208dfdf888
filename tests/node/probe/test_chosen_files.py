"""The probe reads the files that the caller names, and says of each why it cannot."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from assay.node.probe.named_settings import MAX_FILE_BYTES, read_chosen_files
from assay.node.probe.node_access import NodeRoot, resolve_lazy


def test_each_named_file_has_its_hash_and_permissions_or_a_reason(tmp_path: Path):
    (tmp_path / "good").write_text("a\n")
    (tmp_path / "good").chmod(0o640)
    (tmp_path / "large").write_bytes(b"0" * (MAX_FILE_BYTES + 1))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    names = ["/good", "/large", "/folder", "/pipe", "/missing"]
    tree = resolve_lazy(read_chosen_files(NodeRoot(str(tmp_path)), names))
    sha256 = hashlib.sha256(b"a\n").hexdigest()
    assert tree["/good"] == {"sha256": {"value": sha256}, "mode": {"value": "0640"}}
    assert tree["/missing"] == {"absent": "/missing: No such file or directory"}
    assert {name: list(tree[name]) for name in ("/large", "/folder", "/pipe")} == {
        name: ["failed"] for name in ("/large", "/folder", "/pipe")
    }
