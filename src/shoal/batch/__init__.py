"""The papers' batch learners, a file or folder each. Read `base` first, then a learner."""
