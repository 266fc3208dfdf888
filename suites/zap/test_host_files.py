"""The files that the spec declares are as they should be."""

import hashlib

import pytest

pytestmark = [pytest.mark.phase("zap", "production"), pytest.mark.passive]


@pytest.mark.fault("host.config.drift")
def test_files(node, spec):
    """Compare content and permissions of every file of the spec."""
    assert len(node.host), "the probe shows nothing of the host"
    wrong = []
    for path, file in spec.host.files.items():
        seen = node.files[path]
        if seen.sha256 != hashlib.sha256(file.content.encode()).hexdigest():
            wrong.append(f"{path} has another content than {file.content.source}")
        elif seen.mode != file.mode:
            wrong.append(f"{path} has the permissions {seen.mode}, expected {file.mode} ({file.mode.source})")
    assert not wrong, "; ".join(wrong)
