"""What a page sends, as a typed message, and where it comes from."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from bothost.web.guard import BODY_BYTES

T = TypeVar("T")


async def body(request: Request, kind: type[T]) -> T:
    """The request's JSON. Raises HTTPException 400 or 413, which says what is wrong with it."""
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except ClientDisconnect:  # the guard cuts off what is too large; who has really gone reads no answer
        raise HTTPException(413, f"the body is larger than {BODY_BYTES} bytes") from None
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the request cannot be read: {error}") from None


def address_of(request: Request) -> str:
    """The address of the browser, also behind a proxy on this machine. Empty for a client that has none."""
    return request.client.host if request.client is not None else ""
