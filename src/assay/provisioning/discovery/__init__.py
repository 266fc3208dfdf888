"""Takes machines that were seen, and the fleet. Gives which node each is, what contradicts that, and a draft of it."""
