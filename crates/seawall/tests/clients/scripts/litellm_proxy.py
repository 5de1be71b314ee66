"""LiteLLM's own proxy, whose router does not sleep between its attempts: that changes how long they take, not how many.

Arguments: those of LiteLLM's command.
"""
import litellm

litellm.Router._time_to_sleep_before_retry = lambda *_, **__: 0

from litellm.proxy.proxy_cli import run_server

run_server()
