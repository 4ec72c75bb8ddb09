"""Access: tokens with scopes, and names of this computer. `routes` has the scope that each route needs."""

import hmac
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

OPEN, READ, WRITE, ADMIN = range(4)  # a scope includes those before it
SCOPES = {"read": READ, "write": WRITE, "admin": ADMIN}
VARIABLE = "SHOAL_TOKEN_"  # and READ, WRITE or ADMIN


class Token(NamedTuple):
    """A secret, and its scope."""

    secret: bytes
    scope: int


LOCAL = frozenset({b"localhost", b"127.0.0.1", b"[::1]"})
_PORT = re.compile(rb":\d*$")


@lru_cache(256)
def is_local(host: bytes) -> bool:
    """Whether the `Host` of a request names this computer.

    A foreign page may resolve its own name to 127.0.0.1, and so reach a service without tokens from a browser (DNS
    rebinding). The browser still sends the page's name as `Host`.
    """
    return _PORT.sub(b"", host.strip().lower()) in LOCAL


def allowed(tokens: list[Token], authorization: bytes) -> int:
    """The scope of a request's `Authorization: Bearer …`. Every token is compared, in constant time."""
    if not tokens:
        return ADMIN
    kind, _, given = authorization.partition(b" ")
    found = OPEN
    for token in tokens:
        if hmac.compare_digest(token.secret, given.strip()) and kind.lower() == b"bearer":
            found = max(found, token.scope)
    return found


def read_tokens(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> list[Token]:
    """Tokens of a file (JSON: {"read": ["…"], "write": […], "admin": […]}) and of the environment.

    Raises
    ------
    ValueError
        If the file is not of that form, or a token is shorter than 16 characters.
    """
    given: dict[str, list[str]] = {}
    if path is not None:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"the tokens in {path} cannot be read: {error}") from None
        form = isinstance(found, dict) and set(found) <= set(SCOPES)
        if not form or not all(
            isinstance(some, list) and all(isinstance(t, str) for t in some) for some in found.values()
        ):
            raise ValueError(f'{path}: expected {{"read": ["…"], "write": ["…"], "admin": ["…"]}}')
        given = found
    for name in SCOPES:
        if secret := environment.get(VARIABLE + name.upper()):
            given = {**given, name: [*given.get(name, []), secret]}
    tokens = [Token(secret.encode(), SCOPES[name]) for name, some in given.items() for secret in some]
    if any(len(token.secret) < 16 for token in tokens):
        raise ValueError("a token has at least 16 characters; `openssl rand -hex 32` makes one")
    return tokens
