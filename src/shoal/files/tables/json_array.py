"""A JSON array of objects, cut into the texts of its values while it is read, so that it may be larger than memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator

LONGEST_VALUE = 1 << 26  # letters: what is not JSON must not take the whole file into memory
_SPACE = re.compile(r"[ \t\r\n]*")
_BEGIN = re.compile(rb"\s*\[\s*[{\]]")
START, FIRST, NEXT, AFTER, END = "[", "]", "", ",]", "end"  # what may come, but for values
VALUE_MAY_COME = (FIRST, NEXT)


def is_array(block: bytes) -> bool:
    """Whether a file that begins so is an array of objects, and not a line for each of them."""
    return _BEGIN.match(block) is not None


def cut_array(name: str, blocks: Iterable[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """The values of an array, those of a block together, each on one line and with the line on which it begins.

    Raises
    ------
    ValueError
        If it is no array or breaks off; `name` is the file.
    """
    cutter = _Cutter(name)
    for block in blocks:
        yield cutter.values(block)
    yield cutter.values(b"", is_last=True)


class _Cutter:
    """What has been read and not cut yet, and what is to come next there."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._letters = codecs.getincrementaldecoder("utf-8")()
        self._decode = json.JSONDecoder().raw_decode
        self._rest, self._line, self._expected = "", 1, START

    def values(self, block: bytes, *, is_last: bool = False) -> list[tuple[int, bytes]]:
        """The values that end in this block."""
        try:
            text = self._rest + self._letters.decode(block, is_last)
        except UnicodeDecodeError:
            raise self._damaged("it is not UTF-8 text (iconv converts it)") from None
        found: list[tuple[int, bytes]] = []
        done = 0
        while (at := self._skip(text, done)) < len(text):
            self._line += text.count("\n", done, at)
            done = at
            if self._expected == END:
                raise self._damaged("more follows its end")
            if text[at] in self._expected:
                self._expected = {"[": FIRST, ",": NEXT, "]": END}[text[at]]
                done += 1
                continue
            if self._expected not in VALUE_MAY_COME:
                raise self._damaged(f"{text[at]!r} stands there, expected {' or '.join(self._expected)}")
            end = self._end(text, at, is_last=is_last)
            if end is None:
                break
            found.append((self._line, re.sub(r"[\r\n]", " ", text[at:end]).encode()))
            self._line += text.count("\n", at, end)
            done, self._expected = end, AFTER
        self._rest = text[done:]
        if is_last and self._expected != END:
            raise self._damaged("it breaks off")
        return found

    def _end(self, text: str, at: int, *, is_last: bool) -> int | None:
        """Where the value ends; None if more has to be read to know."""
        try:
            _, end = self._decode(text, at)
        except ValueError as error:
            if is_last or len(text) - at > LONGEST_VALUE:
                raise self._damaged(str(error)) from None
            return None
        return None if end == len(text) and not is_last else end  # 12 may become 123

    @staticmethod
    def _skip(text: str, at: int) -> int:
        found = _SPACE.match(text, at)
        assert found is not None
        return found.end()

    def _damaged(self, why: str) -> ValueError:
        return ValueError(f"{self._name}, line {self._line}: damaged or not a JSON array of objects: {why}")
