"""Routes that do nothing, in the framework of the service: how a page of its documentation has them, and with the
least that the framework can do."""

from typing import Any

import msgspec
from litestar import Litestar, Request, Response, post


@post("/plain", status_code=200)
async def plain(data: dict[str, Any]) -> dict[str, Any]:
    return {"columns": len(data)}


@post("/least", status_code=200)
async def least(request: Request[Any, Any, Any]) -> Response[bytes]:
    found = msgspec.json.decode(await request.body())
    return Response(msgspec.json.encode({"columns": len(found)}), media_type="application/json")


app = Litestar([plain, least], openapi_config=None)
