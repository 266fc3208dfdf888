"""What is owed is done: intents written first, each once, proved by the world, whatever is killed."""
