"""Takes the data of an answer. Does its layout. Gives text, tables and progress for people."""
