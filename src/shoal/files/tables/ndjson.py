"""NDJSON, one JSON object a line; or an array of them. Values are read as strings, as in CSV, so both mean the same."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from shoal.files.source import ByteSource
from shoal.files.tables.batches import Batch, parse_good_records
from shoal.files.tables.json_array import cut_array, is_array


class NDJSON:
    """Batches of strings from a file of JSON objects; keys become columns in the order in which they appear.

    Raises ValueError if the file is empty.
    """

    def __init__(self, source: ByteSource) -> None:
        self.names: list[str] = []
        self._source = source

    def batches(self) -> Iterator[Batch]:
        """All rows; a key that first appears in a later batch is a new column there."""
        empty = True
        for numbered in self._records():
            if numbered:
                empty = False
                yield self._batch([text for _, text in numbered], [number for number, _ in numbered])
        if empty:
            raise ValueError(f"{self._source.name} is empty, expected a JSON object on every line")

    def _records(self) -> Iterator[list[tuple[int, bytes]]]:
        """Lines or values of the array, with the line on which they begin."""
        blocks = self._source.blocks()
        first = next(blocks, b"")
        blocks = itertools.chain([first], blocks)
        if is_array(first):
            yield from cut_array(self._source.name, blocks)
            return
        line = 1
        for block in self._source.lines(blocks):
            yield [(number, one) for number, one in enumerate(block, line) if one.strip()]
            line += len(block)

    def _batch(self, records: list[bytes], numbers: list[int]) -> Batch:
        self._learn_names(records)
        return parse_good_records(self._parse, _explain, records, np.array(numbers, np.int64))

    def _learn_names(self, records: list[bytes]) -> None:
        """Add the keys that are new, in order of appearance (which type inference does not keep)."""
        known = set(self.names)
        missing: set[str] | None = None  # not known: look at every line
        try:
            schema = pl.scan_ndjson(io.BytesIO(b"\n".join(records)), infer_schema_length=None).collect_schema()
            missing = set(schema) - known
        except pl.exceptions.PolarsError:
            pass  # a malformed line, or an object here and a list there
        for record in records:
            if missing is not None and missing <= known:
                return
            try:
                keys = json.loads(record)
            except ValueError:
                continue
            if isinstance(keys, dict):
                self.names += [key for key in keys if key not in known]
                known.update(keys)

    def _parse(self, records: Sequence[bytes]) -> pl.DataFrame:
        schema = dict.fromkeys(self.names, pl.String)
        if not records or not schema:
            return pl.DataFrame(schema=schema)
        return pl.read_ndjson(b"\n".join(records), schema=schema)


def _explain(record: bytes) -> str:
    try:
        value = json.loads(record)
    except ValueError as error:
        return f"not JSON ({error}), expected a JSON object"
    if isinstance(value, dict):
        return "a JSON object with a value that cannot be read, expected strings, numbers, true, false or null"
    return f"a JSON {type(value).__name__}, expected a JSON object"
