"""The scope of each token, and names of this computer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.serve.http.access import ADMIN, OPEN, READ, WRITE, Token, allowed, is_local, read_tokens

TOKENS = [Token(b"r" * 16, READ), Token(b"w" * 16, WRITE), Token(b"a" * 16, ADMIN)]


@pytest.mark.parametrize(
    ("given", "scope"),
    [(b"Bearer " + b"r" * 16, READ), (b"bearer  " + b"w" * 16 + b" ", WRITE), (b"BEARER " + b"a" * 16, ADMIN),
     (b"Bearer " + b"a" * 15, OPEN), (b"Bearer " + b"a" * 17, OPEN), (b"Basic " + b"a" * 16, OPEN), (b"", OPEN),
     (b"a" * 16, OPEN), (b"Bearer", OPEN), (b"Bearer " + b"\xff" * 16, OPEN)],
)  # fmt: skip
def test_the_scope_of_a_token(given: bytes, scope: int) -> None:
    assert allowed(TOKENS, given) == scope
    assert allowed(TOKENS[::-1], given) == scope
    assert allowed([], given) == ADMIN


def test_one_secret_with_two_scopes_has_the_larger() -> None:
    both = [Token(b"x" * 16, ADMIN), Token(b"x" * 16, READ)]
    assert allowed(both, b"Bearer " + b"x" * 16) == allowed(both[::-1], b"Bearer " + b"x" * 16) == ADMIN


def test_names_of_this_computer() -> None:
    for host in (b"localhost", b"LocalHost:80", b" 127.0.0.1:8000 ", b"[::1]", b"[::1]:1", b"localhost:"):
        assert is_local(host), host
    for host in (b"", b"localhost.", b"127.0.0.2", b"::1", b"localhost:80a", b"a.localhost", b"localhost:1:2"):
        assert not is_local(host), host


def test_tokens_of_a_file_and_of_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"read": ["r" * 16, "s" * 20], "admin": ["a" * 16]}), encoding="utf-8")
    environment = {"SHOAL_TOKEN_READ": "t" * 16, "SHOAL_TOKEN_WRITE": "é" * 8, "SHOAL_TOKEN_ADMIN": ""}
    assert set(read_tokens(path, environment)) == {
        Token(b"r" * 16, READ), Token(b"s" * 20, READ), Token(b"t" * 16, READ), Token("é".encode() * 8, WRITE),
        Token(b"a" * 16, ADMIN),
    }  # fmt: skip
    path.write_text(json.dumps({name: [name * 5] for name in ("read", "write", "admin")}), encoding="utf-8")
    assert [token.scope for token in read_tokens(path, {})] == [READ, WRITE, ADMIN]
    assert read_tokens(None, {}) == []
    for text in (
        "",
        "[]",
        '{"root": []}',
        '{"read": "r"}',
        '{"read": [1]}',
        '{"read": ["rrrrrrrrrrrrrrrr", 1]}',
        '{"read": [], "write": ""}',
        '{"read": null}',
        "\xff",
    ):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(ValueError, match=r"tokens\.json.*(cannot be read|expected)"):
            read_tokens(path, {})
    with pytest.raises(ValueError, match="cannot be read"):
        read_tokens(tmp_path / "none.json", {})
    with pytest.raises(ValueError, match="at least 16 characters"):
        read_tokens(None, {"SHOAL_TOKEN_READ": "r" * 15})
