"""What a saved stream knew, without opening a file."""

from __future__ import annotations

from shoal.files.targets import State, check_state, reading_state


def saved_feature_names(state: State) -> list[str]:
    """Names of the columns of X, from what `FileStream.to_dict` gave.

    Raises
    ------
    ValueError
        If it is not the state of a stream.
    """
    with reading_state():
        family, reader = state["family"], state["reader"]
        if family == "libsvm":
            return [str(i + 1) for i in range(reader["width"])]  # as the indices stand in the file
        if family == "vw":
            return list(reader["names"])
        check_state(family == "table", "the format")
        from shoal.files.tables.encoder import StreamEncoder

        return StreamEncoder.from_dict(reader["encoder"]).feature_names
