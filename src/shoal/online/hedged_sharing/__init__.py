"""The default: experts that learn and share in different ways, mixed row by row; its paper is docs/hedged-sharing.md.

Begin with its twin in plain NumPy, tests/twins/hedged_sharing/twin.py, which says all of it on one dense row. Then read
`experts` (the table), `row` (what happens to a row, in order), `scaling`, the groups of experts (`linear`, `crossing`,
`dense` with `columns`) and `mixing`. `state` and `algorithm` keep and run it, `learner` is what users see, `explaining`
says what moved an answer.
"""
