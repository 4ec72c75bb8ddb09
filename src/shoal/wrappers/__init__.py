"""Learners around other learners."""
