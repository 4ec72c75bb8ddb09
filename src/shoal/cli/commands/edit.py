"""`shoal edit`: a saved model with fewer columns."""

from collections.abc import Sequence
from pathlib import Path

from shoal.files.messages import plural
from shoal.model_file import knows_no_table, load_baselines, load_model
from shoal.tabular.table_model import TableModel


def edit_model(path: str, drop: Sequence[str]) -> None:
    """Let a model use some columns no more, neither to learn nor to predict."""
    if not drop:
        raise ValueError("nothing to do: name the columns to leave out by --drop")
    learner, reading = load_model(path)
    if reading is None or reading.state.get("family") != "table":
        raise knows_no_table(path, learner)
    table = TableModel.loaded(learner, reading)
    table.drop_columns(drop)
    table.save(Path(path), load_baselines(path))
    print(f"{path} uses {', '.join(drop)} no more; {plural(len(table.encoder.column_names), 'column')} left")
