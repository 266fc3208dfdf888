"""Takes a fleet repository: a folder or a git revision. Reads and checks `inventory/`, `specs/` and `suites/`.

Gives a Fleet, or problems with their file and line; and says which home is chosen, the fleet's or its lab's.
Starts at `loader.load_fleet`, `check.check_repository`, `home.find_home`.
"""
