"""Takes messages of the kernel that were found by a pattern, or break off before it. Gives what they say or may say."""
