"""Tables for a terminal or for a page in Markdown."""

from __future__ import annotations


def print_head(title: str, columns: list[str], *, markdown: bool) -> None:
    """What the table is of, and what stands in its columns."""
    print(f"\n### {title}\n" if markdown else f"\n{title}")
    print_row("system", columns, markdown=markdown)
    if markdown:
        print("| --- " + "| ---: " * len(columns) + "|")


def print_row(name: str, cells: list[str], *, markdown: bool) -> None:
    """A line of it."""
    if markdown:
        print("| " + " | ".join([name, *cells]) + " |", flush=True)
    else:
        print(f"{name:52}" + "".join(f"{cell:>12}" for cell in cells), flush=True)
