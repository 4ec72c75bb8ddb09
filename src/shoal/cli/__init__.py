"""The program `shoal`."""

from __future__ import annotations


def main() -> None:
    """Entry point; everything else is imported when it is needed."""
    from shoal.cli.starting import collect_later, defer

    defer()
    collect_later()
    from shoal.cli.app import start

    start()
