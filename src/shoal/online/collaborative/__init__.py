"""Collaborative online multi-task learning (Li, Hoi, Chang, Liu, Jain, TKDE 2014): a global model pulls the tasks' own.

Read `collaborative_pa` first (COML, Passive-Aggressive steps), then `collaborative_cw` (CW-COL, Gaussians); `lazy_pull`
applies the pulls of both when a row touches a feature. The plain twin is tests/twins/collaborative.py.
"""
