"""What a run came to: chosen, compared with another, and told in many formats. One module a format."""
