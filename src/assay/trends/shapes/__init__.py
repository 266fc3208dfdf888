"""Takes nothing. Gives the shapes of trends and replays as JSON: each field with what it means."""
