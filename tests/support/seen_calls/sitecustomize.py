"""Python imports this at its start where the folder is on its path: it sees what a child starts."""

import os

if os.environ.get("ASSAY_SEEN_CALLS"):
    from tests.support.seen_calls import install

    install()
