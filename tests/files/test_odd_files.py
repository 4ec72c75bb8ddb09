"""Whatever is on a disk is read, or refused in one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path

from tests.files.odd_files import odd_files

from shoal.files import open_stream


def test_odd_files_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    cases, read = 0, 0
    for odd in odd_files(tmp_path):
        cases += 1
        try:
            with open_stream(odd.path, **odd.options) as stream:
                rows = sum(chunk.X.shape[0] for chunk in stream)
        except (ValueError, FileNotFoundError) as error:
            message = str(error)
            assert odd.rows is None, (odd.name, message)
            assert message, odd.name
            assert "\n" not in message, (odd.name, message)
            assert len(message) < 600 + 2 * len(str(tmp_path)), (odd.name, message)
        else:
            read += 1
            assert odd.rows in (None, rows), (odd.name, rows)
    assert cases >= 200
    assert cases / 4 < read < cases
