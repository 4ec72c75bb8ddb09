"""Tables for a terminal or for a page in Markdown."""


def print_head(title: str, columns: list[str], *, markdown: bool, first: str = "system", width: int = 12) -> None:
    """What the table is of, and what stands in its columns, which are so wide in a terminal."""
    print(f"\n### {title}\n" if markdown else f"\n{title}")
    print_row(first, columns, markdown=markdown, width=width)
    if markdown:
        print("| --- " + "| ---: " * len(columns) + "|")


def print_row(name: str, cells: list[str], *, markdown: bool, width: int = 12) -> None:
    """A line of it."""
    if markdown:
        print("| " + " | ".join([name, *cells]) + " |", flush=True)
    else:
        print(f"{name:52}" + "".join(f"{cell:>{width}}" for cell in cells), flush=True)
