"""`Periodic`, where who compares learners looks for it."""

from shoal.wrappers.periodic import Periodic as Periodic
