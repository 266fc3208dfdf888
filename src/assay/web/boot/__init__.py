"""Takes the requests of machines that boot. Gives scripts, images and first data, no secret without a proof."""
