"""What should be fast, measured."""
