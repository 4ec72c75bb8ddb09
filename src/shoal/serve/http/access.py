"""Who may do what: tokens, each with a scope, and the scope that each route needs."""

from __future__ import annotations

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
ROUTES: tuple[tuple[str, str, int], ...] = (
    ("GET", r"/health", OPEN),
    ("GET", r"/ready", OPEN),
    ("GET", r"/", OPEN),  # the page has no numbers in it; what it shows it asks for with a token
    ("GET", r"/page/[a-z.]+", OPEN),
    ("GET", r"/v1/openapi\.json", READ),
    ("POST", r"/v1/predict", READ),
    ("POST", r"/v1/query", READ),
    ("GET", r"/v1/events", READ),
    ("GET", r"/v1/model", READ),
    ("GET", r"/v1/tasks", READ),
    ("GET", r"/v1/tasks/.+", READ),
    ("GET", r"/metrics", READ),
    ("POST", r"/v1/learn", WRITE),
    ("POST", r"/v1/labels", WRITE),
    ("DELETE", r"/v1/tasks/.+", ADMIN),
    ("GET", r"/v1/export", ADMIN),
)
_PATTERNS = [(method, re.compile(path, re.DOTALL), scope) for method, path, scope in ROUTES]
VARIABLE = "SHOAL_TOKEN_"  # and READ, WRITE or ADMIN


class Token(NamedTuple):
    """A secret and what it allows."""

    secret: bytes
    scope: int


LOCAL = frozenset({b"localhost", b"127.0.0.1", b"[::1]"})
_PORT = re.compile(rb":\d*$")


@lru_cache(256)
def scopes_of(path: str) -> Mapping[str, int]:
    """The methods that the table has for a path, letter by letter, and their scopes; none: there is no such route.

    The framework also takes `/v1/learn/` for `/v1/learn`: what the table does not name must not come that far.
    """
    return {method: scope for method, pattern, scope in _PATTERNS if pattern.fullmatch(path)}


@lru_cache(256)
def scope_of(method: str, path: str) -> int:
    """The scope that a request needs; what no route has is for all who have a token to be told."""
    found = scopes_of(path)
    return found.get(method, min([READ, *found.values()]))


@lru_cache(256)
def is_local(host: bytes) -> bool:
    """Whether a request's `Host` is a name of this computer alone.

    A page from elsewhere can have its own name lead to 127.0.0.1 and so have a browser ask a service that asks for no
    token (DNS rebinding); the browser still says that name.
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
