"""Takes the fleet, its images and what a booting machine asks. Gives its boot script, its first data and its tokens."""
