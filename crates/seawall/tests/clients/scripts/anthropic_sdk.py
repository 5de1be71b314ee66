"""The Anthropic Python client, synchronous and asynchronous. Argument: HOST:PORT of the data plane."""
import asyncio
import sys

import anthropic

client = anthropic.Anthropic(base_url=f"http://{sys.argv[1]}", api_key="demo-key")
hi = [{"role": "user", "content": "hi"}]

answer = client.messages.create(model="claude-demo", max_tokens=20, messages=hi)
assert answer.content[0].text and answer.usage.output_tokens > 0, answer
with client.messages.stream(model="claude-demo", max_tokens=20, messages=hi) as stream:
    text = "".join(stream.text_stream)
    assert text and stream.get_final_message().stop_reason in ("end_turn", "max_tokens")
assert client.messages.count_tokens(model="claude-demo", messages=hi).input_tokens > 0

try:
    anthropic.Anthropic(base_url=f"http://{sys.argv[1]}", api_key="wrong").messages.create(
        model="claude-demo", max_tokens=1, messages=hi
    )
    raise SystemExit("a wrong key was taken")
except anthropic.AuthenticationError as error:
    assert error.body["type"] == "error" and error.body["request_id"].startswith("req_"), error.body
try:
    client.messages.create(model="claude-0", max_tokens=1, messages=hi)
    raise SystemExit("an unknown model was taken")
except anthropic.NotFoundError as error:
    assert error.body["error"]["type"] == "not_found_error" and "claude-demo" in error.message, error.body


async def asynchronous():
    one = anthropic.AsyncAnthropic(base_url=f"http://{sys.argv[1]}", api_key="demo-key")
    async with one.messages.stream(model="claude-demo", max_tokens=20, messages=hi) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        whole = await stream.get_final_message()
    # The simulated servers' tokens are words: none may be lost on the way.
    assert len(text.split()) == whole.usage.output_tokens > 0, (text, whole)
    await one.close()


asyncio.run(asynchronous())
print("ok")
