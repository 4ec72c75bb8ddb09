"""The commands: one module each (`log` has `replay`, too; `learners` has `datasets`).

`shoal.cli.app` has the signatures and imports a module when its command runs. Several commands make learners by name
with `learners`; `follow` is `serve` with a topic, and makes its first model by `run`. Read `run` first.
"""
