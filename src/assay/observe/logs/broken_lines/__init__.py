"""Takes lines that a tool cut, wrapped or joined. Gives the lines that they were, or says that one was cut."""
