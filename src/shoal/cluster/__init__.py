"""What a learner on many machines needs: shards for its tasks, and one copy of what all tasks share from several."""
