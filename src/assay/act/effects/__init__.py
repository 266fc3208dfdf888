"""Takes outstanding effects; journals each intent, runs it in a paced queue, and verifies it by reading the world.

Gives ledger entries for what was begun and what was verified. An effect happens once, whatever process is killed.
"""
