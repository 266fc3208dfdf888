"""What a controller knows: stories, newest outcomes and standings, kept warm, and asked for once."""
