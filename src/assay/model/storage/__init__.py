"""Takes a document's bytes and digest, and does no I/O. Gives the names and contents of the files that store it."""
