"""Asks for a very long answer through the OpenAI Python client and leaves before its end.

    python openai_leaves.py ADDRESS MODEL MAX_TOKENS mid-stream|before-first-byte

The test and this script take turns, by lines on standard input and output: it writes `begun` (after the first pieces,
or as soon as the request runs), waits for a line, leaves, writes `left`, and stays alive until its standard input
closes, so that it is the closed connection that is noticed and not the end of a process.
"""

import asyncio
import sys

import openai


def tell(word):
    print(word, flush=True)


async def told():
    return await asyncio.to_thread(sys.stdin.readline)


async def read_pieces(stream, begun):
    pieces = 0
    async for chunk in stream:
        pieces += bool(chunk.choices and chunk.choices[0].delta.content)
        if pieces == 5:
            begun.set()


async def ask(client, model, max_tokens, streams, begun):
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": "Where do boats wait?"}],
        "max_tokens": int(max_tokens),
        "extra_body": {"ignore_eos": True},
    }
    if streams:
        await read_pieces(await client.chat.completions.create(**asked, stream=True), begun)
    else:
        # An answer that does not stream has no byte before its end: the test looks at the server instead.
        begun.set()
        await client.chat.completions.create(**asked)


async def main():
    address, model, max_tokens, when = sys.argv[1:]
    begun = asyncio.Event()
    client = openai.AsyncOpenAI(base_url=f"http://{address}/v1", api_key="demo-key", max_retries=0)
    asking = asyncio.create_task(ask(client, model, max_tokens, when == "mid-stream", begun))
    waiting = asyncio.create_task(begun.wait())
    await asyncio.wait({asking, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if asking.done():
        raise SystemExit(f"the answer ended by itself: {asking.exception()!r}")
    tell("begun")
    await told()
    asking.cancel()
    await asyncio.wait({asking})
    if not asking.cancelled():
        raise SystemExit(f"the answer ended before it was left: {asking.exception()!r}")
    tell("left")
    await told()


if __name__ == "__main__":
    asyncio.run(main())
