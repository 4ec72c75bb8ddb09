"""Tables and pictures of results as files for papers and other programs; the ending of the name decides the format."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.evaluation import Orders
from shoal.extras import named_extra
from shoal.report.dependence import dependence_figure
from shoal.report.figure import PICTURES, Figure
from shoal.report.figures import figures
from shoal.report.orders import order_figures
from shoal.tabular.explained import PartialDependence
from shoal.whole_file import whole_file

if TYPE_CHECKING:
    import polars as pl

TABLES = (".tex", ".csv", ".parquet")
PARTS = ("lines", "contributions", "overall")  # rows of a verdict, of an explanation, of importances
SPECIAL = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "\\": "\\textbackslash{}",
        "±": "$\\pm$",
        "²": "$^2$",
        "×": "$\\times$",
        "–": "--",
    }
)


def export(result: Any, path: str | os.PathLike[str]) -> list[Path]:
    r"""Write a table, a picture, or all of a result.

    Parameters
    ----------
    result : `Figure`, result or rows
        Results are `Evaluation` (its tasks), `Orders`, `SearchResult`, `Verdict`, `Explanation`, `Importances`,
        `ImportanceChanges`, `PartialDependence` (with its picture), a list of named tuples or figures, such as similar
        tasks; a dict of evaluations, the learner's first; a polars frame.
    path : path
        A file: `.tex`, `.csv` or `.parquet` for a table, `.svg`, `.pdf` or `.png` for a picture. Without an ending, a
        folder, which is made: every table and picture of the result in LaTeX, CSV, Parquet, SVG and PDF.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    ValueError
        If the result has no table, or no picture, or the ending is none of these.

    Examples
    --------
    >>> import tempfile
    >>> from shoal.model.explanations import SimilarTask
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path] = export([SimilarTask("anna_1", 0.5)], f"{folder}/alike.tex")
    ...     print(path.read_text())
    \begin{tabular}{lr}
    \toprule
    task & similarity \\
    \midrule
    anna\_1 & 0.5 \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    path = Path(path)
    if not path.suffix:
        return _everything(result, path)
    if path.suffix not in (*TABLES, *PICTURES):
        raise ValueError(f"{path} must end in {', '.join((*TABLES, *PICTURES))}, or be a folder, without an ending")
    if path.suffix in PICTURES:
        if not isinstance(result, Figure):
            raise ValueError(f"a {type(result).__name__} is no picture; export it to a folder, with all its pictures")
        result.save(path)
    else:
        _write_table(table_of(result), path)
    return [path]


def _everything(result: Any, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    tables, drawn = _parts(result)
    files = [(frame, folder / f"{name}{ending}") for name, frame in tables.items() for ending in TABLES]
    files += [(figure, folder / f"{figure.name}{ending}") for figure in drawn for ending in (".svg", ".pdf")]
    return [path for part, where in files for path in export(part, where)]


def _parts(result: Any) -> tuple[dict[str, Any], list[Figure]]:
    """Tables by name, and pictures."""
    if isinstance(result, Figure):
        return {}, [result]
    if isinstance(result, Orders):
        tables = {of: result.to_frame(of) for of in ("learners", "orders", "history")}
        return {"places": table_of(result.places), **tables}, order_figures(result)
    if isinstance(result, Mapping):
        return {"scores": _scores(result), **_of_tasks(result)}, figures(result)
    if isinstance(result, PartialDependence):
        return {"dependence": result.to_frame()}, [dependence_figure(result)]
    if hasattr(result, "per_task"):
        return _parts({type(result.learner).__name__: result})
    if isinstance(result, Sequence) and result and all(isinstance(one, Figure) for one in result):
        return {}, list(result)
    return {"table": table_of(result)}, []


def _of_tasks(evaluations: Mapping[str, Any]) -> dict[str, Any]:
    with named_extra("export"):
        import polars as pl

    found = {}
    for of in ("tasks", "history"):
        frames = [one.to_frame(of).select(pl.lit(name).alias("learner"), pl.all()) for name, one in evaluations.items()]
        found[of] = pl.concat(frames, how="diagonal_relaxed")
    return found


def _scores(evaluations: Mapping[str, Any]) -> "pl.DataFrame":
    """A row per learner: scores over all rows, with their standard errors, and means over tasks."""
    records = []
    for name, one in evaluations.items():
        errors = {f"{metric}_error_bar": value for metric, value in one.standard_errors.items()}
        macro = {f"macro_{metric}": value for metric, value in one.macro.items()}
        head = {"learner": name, "rows": one.rows, "seconds": one.wall_seconds}
        records.append(head | one.overall | errors | macro)
    return _frame(records)


def table_of(result: Any) -> "pl.DataFrame":
    """The table of a result."""
    with named_extra("export"):
        import polars as pl

    if isinstance(result, pl.DataFrame):
        return result
    if isinstance(result, Mapping):
        return _scores(result)
    for name in ("to_frame", "table"):
        found = getattr(result, name, None)
        if found is not None:
            frame: pl.DataFrame = found() if callable(found) else found
            return frame
    rows = next((getattr(result, name) for name in PARTS if hasattr(result, name)), result)
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        records = [_record(row) for row in rows]
        if records and all(records):
            return _frame([record for record in records if record])
    raise ValueError(f"a {type(result).__name__} has no table")


def _record(row: Any) -> dict[str, Any] | None:
    if hasattr(row, "_asdict"):
        return dict(row._asdict())
    return dict(vars(row)) if hasattr(row, "__dataclass_fields__") else None


def _frame(records: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    with named_extra("export"):
        import polars as pl

    return pl.DataFrame([dict(record) for record in records], infer_schema_length=None, strict=False)


def _write_table(frame: "pl.DataFrame", path: Path) -> None:
    with whole_file(path) as part:
        if path.suffix == ".csv":
            frame.write_csv(part)
        elif path.suffix == ".parquet":
            frame.write_parquet(part)
        else:
            part.write_text(latex(frame), encoding="utf-8")


def latex(frame: "pl.DataFrame") -> str:
    """The table for LaTeX with booktabs, numbers with four digits."""
    columns = "".join("r" if kind.is_numeric() else "l" for kind in frame.dtypes)
    lines = [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", _line(frame.columns), "\\midrule"]
    lines += [_line([_cell(value) for value in row]) for row in frame.iter_rows()]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cell.translate(SPECIAL) for cell in cells) + " \\\\"


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
