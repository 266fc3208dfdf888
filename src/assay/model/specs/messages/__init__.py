"""What messages of the kernel say, below the patterns by which they are found."""
