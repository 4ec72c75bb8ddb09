"""Pages that the program and the service write about themselves: all commands, and all routes of the HTTP interface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shoal.cli.app import app
from shoal.serve.http.openapi import description
from shoal.serve.http.routes import ROUTES

COMMANDS = """\
# Commands

What `shoal COMMAND --help` prints, as the program has it; [the program](../program.md) shows the commands at work.

"""
ROUTES_HEAD = """\
# The HTTP interface

What a service says of itself at `/v1/openapi.json`, for a model whose task is in the column `user` and whose label is
in the column `spam`; [the service](../service.md) shows the routes at work. Errors come as a `Problem`.

"""


def commands() -> str:
    """All commands with their options."""
    text = app.generate_docs(output_format="markdown", usage_name="shoal")
    _, _, text = text.partition("\n## shoal run")  # before it are two lists of the headings
    return COMMANDS + re.sub(r"^```console$", "```text", f"## shoal run{text}", flags=re.M)


def told(schema: dict[str, Any]) -> str:
    """A schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(map(told, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "")
    if kind == "array":
        return f"array of {told(schema['items'])}" if schema.get("items") else "array"
    if isinstance(schema.get("additionalProperties"), dict) and not schema.get("properties"):
        return f"object of {told(schema['additionalProperties'])}"
    words = kind if isinstance(kind, str) else " or ".join(kind)
    said = [*([words] if words not in ("", "string") or "description" not in schema else []), schema.get("description")]
    return "; ".join(filter(None, said))


def routes() -> str:
    """All routes with their parameters, bodies, answers and errors, and the types of these."""
    model = SimpleNamespace(describe=lambda: {"task": ["user"], "label": "spam"})
    document = description(ROUTES, model)  # type: ignore[arg-type]
    parts = [ROUTES_HEAD]
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            parts += route_lines(f"{method.upper()} {path}", route)
    parts.append("\n## Errors\n\n")
    for status, problem in sorted(document["components"]["responses"].items()):
        parts.append(f"- {status}: {problem['description']}\n")
    parts.append("\n## Types\n")
    for name, schema in document["components"]["schemas"].items():
        parts += type_lines(name, schema)
    return "".join(parts)


def route_lines(name: str, route: dict[str, Any]) -> Iterator[str]:
    """The section of a route."""
    scopes = [scope for one in route["security"] for scope in one["token"]]
    yield f"\n## {name}\n\n{route['summary'].rstrip('.')}{'' if route['summary'].endswith('?') else '.'}"
    yield f" Scope of the token: {scopes[0]}.\n\n" if scopes else " No token is needed.\n\n"
    for one in route.get("parameters", ()):
        yield f"- `{one['name']}` in the {one['in']}: {told(one['schema'])}"
        yield f"; {one['description']}\n" if "description" in one else "\n"
    for kind, body in route.get("requestBody", {"content": {}})["content"].items():
        yield f"- body, `{kind}`: {told(body['schema'])}\n"
    errors = []
    for status, answer in route["responses"].items():
        if "$ref" in answer:
            errors.append(status)
            continue
        for kind, one in answer.get("content", {}).items():
            yield f"- {status}, `{kind}`: {told(one.get('schema', {})) or answer['description']}\n"
    yield f"- errors: {', '.join(errors)}\n"


def type_lines(name: str, schema: dict[str, Any]) -> Iterator[str]:
    """The section of a type: a table of its fields."""
    yield f"\n### {name}\n\n{schema.get('description', '')}\n"
    if schema.get("properties"):
        yield "\n| field | type | always there |\n| --- | --- | --- |\n"
    for field, of in schema.get("properties", {}).items():
        is_there = "yes" if field in schema.get("required", ()) else "no"
        yield f"| `{field}` | {told(of) or 'any'} | {is_there} |\n"


def write_pages(folder: Path) -> None:
    """Both pages."""
    (folder / "commands.md").write_text(commands(), "utf-8")
    (folder / "http.md").write_text(routes(), "utf-8")
