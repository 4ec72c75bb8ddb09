"""`saved_feature_names`: the names of a saved state are those of its stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.files import open_stream
from shoal.files.opening import saved_feature_names

FILES = {
    "sales.csv": "shop,size,text,sold\na,1,red hat so new,1\nb,2,green hat and old,0\na,3,blue hat for all,1\n",
    "sales.libsvm": "1 qid:1 1:0.5 4:2\n-1 qid:2 2:1\n",
    "sales.vw": "1 |shop a |x size:2 red\n-1 |shop b |x size:1 green\n",
}


@pytest.mark.parametrize("name", FILES)
def test_names_are_those_of_the_stream(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name])
    options: dict[str, Any] = {"sales.csv": {"task": "shop", "label": "sold"}, "sales.vw": {"task": "shop"}}.get(
        name, {}
    )
    stream = open_stream(path, **options)
    wide = [chunk.X.shape[1] for chunk in stream][-1]
    assert saved_feature_names(stream.to_dict()) == stream.feature_names
    assert len(stream.feature_names) == wide


def test_a_damaged_state_is_refused() -> None:
    for state in ({}, {"family": "libsvm", "reader": {}}, {"family": "other", "reader": {}}):
        with pytest.raises(ValueError, match="saved state of the file's columns is damaged"):
            saved_feature_names(state)
