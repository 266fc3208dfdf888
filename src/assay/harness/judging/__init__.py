"""Takes what a check read and how it ended; decides verdict and reason, adds excuse and artefacts; gives the outcome to the run's file."""
