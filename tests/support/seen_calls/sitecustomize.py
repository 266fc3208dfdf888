"""Python imports this at its start where the folder is on its path: it sees what a child starts."""

import os

if os.environ.get("CALLS_SEEN_BY_TESTS"):
    from tests.support.seen_calls import install

    install()
