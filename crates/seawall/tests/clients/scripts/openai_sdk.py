"""The OpenAI Python client, synchronous and asynchronous, and its Azure class. Argument: HOST:PORT of the data plane."""
import asyncio
import sys

import openai

host = sys.argv[1]
hi = [{"role": "user", "content": "hi"}]
client = openai.OpenAI(base_url=f"http://{host}/v1", api_key="demo-key")
azure = openai.AzureOpenAI(azure_endpoint=f"http://{host}", api_key="demo-key", api_version="2024-10-21")


def text_of(stream):
    """The text of a chat stream, which must end by a finish reason and by the usage that was asked for."""
    text, reason, usage = "", None, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
    assert reason in ("stop", "length"), reason
    assert usage and usage.completion_tokens > 0, usage
    # The simulated servers' tokens are words: none may be lost on the way.
    assert len(text.split()) == usage.completion_tokens, (text, usage)
    return text


for one in (client, azure):
    answer = one.chat.completions.create(model="demo-chat", messages=hi)
    assert answer.choices[0].message.content and answer.usage.total_tokens > 0, answer
    assert text_of(
        one.chat.completions.create(
            model="demo-chat", messages=hi, stream=True, stream_options={"include_usage": True}
        )
    )
    vectors = one.embeddings.create(model="demo-embed", input=["a", "b"])
    assert len(vectors.data) == 2 and len(vectors.data[0].embedding) > 0, vectors

plain = client.embeddings.create(model="demo-embed", input="a", encoding_format="float")
coded = client.embeddings.create(model="demo-embed", input="a")
assert len(plain.data[0].embedding) == len(coded.data[0].embedding) > 0
for vector in (plain.data[0].embedding, coded.data[0].embedding):
    # Unit vectors: wrongly decoded numbers are none.
    assert abs(sum(number * number for number in vector) - 1) < 1e-4, vector

assert client.completions.create(model="demo-chat", prompt="hi").choices[0].text
assert client.responses.create(model="demo-chat", input="hi").output_text
kinds = [event.type for event in client.responses.create(model="demo-chat", input="hi", stream=True)]
assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
assert [model.id for model in client.models.list()] == ["demo-chat", "demo-embed"]
assert client.models.retrieve("demo-chat").id == "demo-chat"

try:
    openai.OpenAI(base_url=f"http://{host}/v1", api_key="wrong").chat.completions.create(model="demo-chat", messages=hi)
    raise SystemExit("a wrong key was taken")
except openai.AuthenticationError as error:
    assert error.code == "invalid_api_key" and error.request_id.startswith("req_"), error
try:
    client.chat.completions.create(model="gpt-0", messages=hi)
    raise SystemExit("an unknown model was taken")
except openai.NotFoundError as error:
    assert error.code == "model_not_found" and "demo-embed" in error.message, error


async def asynchronous():
    one = openai.AsyncOpenAI(base_url=f"http://{host}/v1", api_key="demo-key")
    answers = await asyncio.gather(
        *(one.chat.completions.create(model="demo-chat", messages=hi, user=str(n)) for n in range(20))
    )
    assert all(answer.choices[0].message.content for answer in answers)
    text = ""
    async for chunk in await one.chat.completions.create(model="demo-chat", messages=hi, stream=True):
        text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    assert text
    await one.close()
    azure = openai.AsyncAzureOpenAI(azure_endpoint=f"http://{host}", api_key="demo-key", api_version="2024-10-21")
    assert (await azure.chat.completions.create(model="demo-chat", messages=hi)).choices[0].message.content
    assert len((await azure.embeddings.create(model="demo-embed", input="a")).data[0].embedding) > 0
    kinds = [event.type async for event in await azure.responses.create(model="demo-chat", input="hi", stream=True)]
    assert kinds[-1] == "response.completed", kinds
    await azure.close()


asyncio.run(asynchronous())
print("ok")
