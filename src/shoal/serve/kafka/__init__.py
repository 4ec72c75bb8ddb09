"""Topics for the engine. Read `follower` first (the thread), then `topic` and `messages`."""
