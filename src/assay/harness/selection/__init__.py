"""Takes the fleet and the options of the command line; decides which checks must be judged on which nodes and subjects; gives those checks and subjects."""
