"""Takes answers about trends, their rules and the lives of parts. Gives lines and tables for people."""
