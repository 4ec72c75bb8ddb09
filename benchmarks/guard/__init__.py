"""The regression guard: a small seeded workload for every public learner, and the numbers that it gave so far."""
