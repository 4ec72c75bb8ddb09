"""Text of any encoding as UTF-8: the given one, UTF-16 and UTF-32 by their marks, Windows-1252 by its bytes.

A text that is not UTF-8 is taken for Windows-1252 if its bytes beyond ASCII stand as letters of western Europe do,
alone or in pairs. Runs of them are letters of another script, whose encoding the user has to name.
"""

import codecs
import re
from collections.abc import Iterable, Iterator

MARKS = {  # first bytes; UTF-32 before UTF-16, whose mark begins it
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
WIDER = {"shift_jis": "cp932"}  # what Windows writes and browsers read under that name
WITHOUT_LETTER = rb"[\x81\x8d\x8f\x90\x9d]"  # in Windows-1252
RARE = re.compile(rb"[\x82-\x84\x86-\x89\x8b\x98\x9b]")  # signs such as a dagger
CONTROLS = 0xA0  # letters of western Europe stand above; below it Windows-1252 has quotes, dashes and the like
HEAD = 32


class ToUTF8:
    """The blocks of one text as UTF-8. Bytes that are no text stay as they are, so that their row is a bad one.

    Attributes
    ----------
    encoding : str or None
        The given one, or what the bytes say; None as long as all are ASCII.
    """

    def __init__(self, name: str, encoding: str | None) -> None:
        self._name = name
        self.encoding = None if encoding is None else known_encoding(encoding)

    def blocks(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The blocks, cut elsewhere where a letter is cut; without a byte order mark."""
        held, decoder, first = b"", None, True
        for block in blocks:
            block, held = held + block, b""
            if first:
                first, self.encoding = False, self.encoding or _marked(block)
                block = block.removeprefix(codecs.BOM_UTF8)
            if self.encoding is None and not block.isascii():
                end = block.rfind(b"\n") + 1 or len(block)
                block, held = block[:end], block[end:]
                self.encoding = None if block.isascii() else _guess(block)
            if self.encoding is not None and held:
                block, held = block + held, b""
            if self.encoding in (None, "utf-8"):
                yield block
                continue
            decoder = decoder or codecs.getincrementaldecoder(str(self.encoding))("surrogateescape")
            yield self._recode(decoder, block)
        if held:
            self.encoding = _guess(held)
            yield held if self.encoding == "utf-8" else held.decode(self.encoding).encode()
        elif decoder is not None:
            yield self._recode(decoder, b"", is_last=True)

    def _recode(self, decoder: codecs.IncrementalDecoder, block: bytes, *, is_last: bool = False) -> bytes:
        try:
            return decoder.decode(block, is_last).encode("utf-8", "surrogateescape")
        except UnicodeError as error:
            raise ValueError(f"{self._name} is not {self.encoding} text: {error} (encoding= names another)") from None


def known_encoding(name: str) -> str:
    """Python's name of an encoding of text; ValueError if there is none."""
    try:
        "".encode(name)
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        raise ValueError(
            f"encoding={name!r} is not known, expected a name such as utf-8, cp1252, utf-16, shift_jis or cp1251"
        ) from None
    return WIDER.get(found, found)


def no_text(record: bytes, error: UnicodeDecodeError) -> str:
    """The message for a row with bytes that are no text."""
    return f"byte {record[error.start]:#04x} is not UTF-8 text (encoding= names another, such as cp1252 or shift_jis)"


def _marked(block: bytes) -> str | None:
    """The encoding by the byte order mark, or by every second byte, which is 0 in UTF-16 of ASCII letters."""
    marked = next((encoding for mark, encoding in MARKS.items() if block.startswith(mark)), None)
    head = block[:HEAD]
    if marked or len(head) < HEAD // 2 or (any(head[::2]) and any(head[1::2])):
        return marked
    return "utf-16-le" if all(head[::2]) else "utf-16-be" if all(head[1::2]) else "utf-32"


def _guess(text: bytes) -> str:
    """UTF-8 or Windows-1252, by whole lines that are not all ASCII.

    >>> [_guess(text) for text in ("Größe".encode("cp1252"), "Größe".encode(), "りんご".encode("cp932"))]
    ['cp1252', 'utf-8', 'utf-8']
    """
    letters = text.decode("utf-8", "ignore")
    n_letters = len(letters) - len(letters.encode("ascii", "ignore"))
    n_bad = text.decode("utf-8", "replace").count("\ufffd")
    if n_bad <= n_letters or re.search(WITHOUT_LETTER, text):
        return "utf-8"
    runs = re.findall(rb"[\x80-\xff]+", text)
    strange = [run for run in runs if len(run) > 2 or RARE.search(run) or (len(run) == 2 and min(run) < CONTROLS)]
    return "cp1252" if 10 * sum(map(len, strange)) <= sum(map(len, runs)) else "utf-8"
