"""Users of layers that all retry on their own: tenacity (3 attempts) over LangChain over the OpenAI client (2 retries).

Arguments: HOST:PORT of LiteLLM's proxy, users. Each asks once for something of its own, all at once. Prints how many
were served, and how many seconds it took.
"""
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import openai
import tenacity
from langchain_openai import ChatOpenAI

host, users = sys.argv[1], int(sys.argv[2])
chat = ChatOpenAI(base_url=f"http://{host}/v1", api_key="demo-key", model="first", max_retries=2)


@tenacity.retry(stop=tenacity.stop_after_attempt(3), reraise=True)
def ask(text):
    chat.invoke(text)


def user(number):
    try:
        ask(f"user {number}")
        return True
    except openai.APIStatusError:
        return False


begun = time.monotonic()
with ThreadPoolExecutor(users) as pool:
    served = sum(pool.map(user, range(users)))
print(f"{served} served, seconds: {time.monotonic() - begun:.0f}")
