"""Learners around other learners. Read `inner` first (a core within a core), then any of them."""
