"""How the OpenAI Python client takes our refusals: it waits as told, and stops where told. Argument: HOST:PORT."""
import sys

import openai

waits = []


class Watched(openai.OpenAI):
    """Writes down the waits that the client would make instead of making them."""

    def _sleep_for_retry(self, *, retries_taken, max_retries, options, response):
        waits.append((float(response.headers["retry-after"]), float(response.headers["retry-after-ms"]) / 1000))


client = Watched(base_url=f"http://{sys.argv[1]}/v1", api_key="demo-key")
hi = [{"role": "user", "content": "hi"}]
# Each request is tried at two of the three servers at most: after two requests all three have stated their wait.
# A request of its own each: one that repeats what has failed twice is not tried at all.
for text in ("one", "two"):
    other = [{"role": "user", "content": text}]
    try:
        client.with_options(max_retries=0).chat.completions.create(model="demo-chat", messages=other)
    except openai.RateLimitError:
        pass
waits.clear()
try:
    client.chat.completions.create(model="demo-chat", messages=hi)
    raise SystemExit("a full fleet served")
except openai.RateLimitError as error:
    assert error.code == "capacity_exhausted", error
    assert "Please try again in" in error.message, error
# Three attempts, each told to wait at least what is left of the upstreams' own wait, in whole seconds up to 58.
assert len(waits) == 2, waits
for seconds, exact in waits:
    assert 15 <= seconds <= 58 and seconds == int(seconds) and seconds - 1 < exact <= seconds, waits

waits.clear()
try:
    client.chat.completions.create(model="gpt-0", messages=hi)
    raise SystemExit("an unknown model was taken")
except openai.NotFoundError:
    assert not waits, waits
print("ok")
