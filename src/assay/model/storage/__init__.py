"""Takes a document's bytes and digest. Gives the names and contents of files that store it, and notes their use."""
