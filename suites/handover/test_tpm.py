"""Nothing of a former customer is left in the node's TPM."""

import pytest

pytestmark = [pytest.mark.phase("hand-over"), pytest.mark.passive]


@pytest.mark.fault("host.config.drift")
def test_tpm_has_no_owner(node):
    """Check that nobody holds a secret for a hierarchy of the TPM: whoever does can keep keys there."""
    owned = [name for name in ("owner", "endorsement", "lockout") if node.tpm[name]]
    assert not owned, f"a secret is set for {', '.join(owned)}: clear the TPM in the firmware's setup, or by tpm2_clear"
