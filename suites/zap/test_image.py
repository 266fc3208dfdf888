"""The node runs the image that assay starts it with."""

import pytest

pytestmark = [pytest.mark.phase("initializing", "zap", "production"), pytest.mark.passive]


@pytest.mark.fault("host.config.drift")
def test_image(node, profile):
    """Compare the image on the kernel's command line with the declared one; a node that others boot passes."""
    shown = [word for word in node.host.cmdline.split() if word.startswith("assay.image=")]
    wanted = node.declared.image if profile.host_settings else ""
    assert not wanted or shown[-1:] == [f"assay.image={wanted}"], (
        f"runs {shown[-1] if shown else 'no image of assay'}, expected assay.image={wanted}"
    )
