"""Work for a client that has gone is not begun, or stopped."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


async def answer_unless_gone(
    app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send
) -> None:
    """Let an app answer a request whose body was read, and stop it if the client leaves before.

    A page that asks anew with every move of a slider leaves many requests behind; those that
    wait for their turn then make room, and those that have begun are stopped, but for a change.
    """
    started = False
    gone = asyncio.create_task(_gone(receive))
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return parts.pop() if parts else await asyncio.shield(gone)

    async def watched(message: Message) -> None:
        nonlocal started
        started = True
        await send(message)

    answering = asyncio.ensure_future(app(scope, next_message, watched))
    try:
        await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answering.done() or started:
            await answering
    finally:
        gone.cancel()
        if answering.cancel():
            await asyncio.wait({answering})


async def _gone(receive: Receive) -> Message:
    while (message := await receive())["type"] != "http.disconnect":
        pass
    return message
