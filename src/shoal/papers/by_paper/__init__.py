"""The experiments: a file a paper, with its data, learners, tables and figures, and the controls that it did not run.

`theory` holds mistakes against the bounds of all papers, `leaderboard` is the library's own protocol, `protocol_notes`
says how each paper's protocol and ours differ. Read `yang_li` first, the shortest paper.
"""
