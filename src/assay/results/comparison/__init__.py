"""Takes two run files and the earlier runs; pairs outcomes by name and classifies each change; gives changes, flaky checks and shifted measurements."""
