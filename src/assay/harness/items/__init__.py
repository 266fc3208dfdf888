"""Takes the test functions of a fleet's suites; makes, orders and runs one pytest item for each subject; gives outcomes, reports and terminal output."""
