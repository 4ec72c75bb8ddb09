"""Results as tables for notebooks, in the notebook's own colors."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeVar

T = TypeVar("T", bound=tuple[object, ...])


def html_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names the rows."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for first, *cells in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Listed(list[T]):
    """A list of named tuples that a notebook shows as a table.

    Examples
    --------
    >>> from shoal.model.explanations import SimilarTask
    >>> Listed([SimilarTask("anna", 0.5)])._repr_html_().count("<th>")
    3
    >>> Listed()._repr_html_()
    '<table><thead><tr></tr></thead><tbody></tbody></table>'
    """

    def _repr_html_(self) -> str:
        fields: Sequence[str] = getattr(self[0], "_fields", ()) if self else ()
        return html_table(
            fields, [[f"{one:.4g}" if isinstance(one, float) else str(one) for one in row] for row in self]
        )
