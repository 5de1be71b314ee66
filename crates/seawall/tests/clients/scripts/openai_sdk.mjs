// The OpenAI Node client and its Azure class. SEAWALL: HOST:PORT of the data plane.
import assert from "node:assert/strict";
import OpenAI, { AzureOpenAI } from "openai";

const host = process.env.SEAWALL;
const messages = [{ role: "user", content: "hi" }];
const client = new OpenAI({ baseURL: `http://${host}/v1`, apiKey: "demo-key" });
const azure = new AzureOpenAI({ endpoint: `http://${host}`, apiKey: "demo-key", apiVersion: "2024-10-21" });

for (const one of [client, azure]) {
  const answer = await one.chat.completions.create({ model: "demo-chat", messages });
  assert.ok(answer.choices[0].message.content && answer.usage.total_tokens > 0);
  let text = "";
  let reason = null;
  for await (const chunk of await one.chat.completions.create({ model: "demo-chat", messages, stream: true })) {
    text += chunk.choices[0]?.delta?.content ?? "";
    reason = chunk.choices[0]?.finish_reason ?? reason;
  }
  assert.ok(text && ["stop", "length"].includes(reason));
  const vectors = await one.embeddings.create({ model: "demo-embed", input: ["a", "b"] });
  assert.equal(vectors.data.length, 2);
  assert.ok(vectors.data[0].embedding.length > 0);
}

assert.ok((await client.responses.create({ model: "demo-chat", input: "hi" })).output_text);
const kinds = [];
for await (const event of await client.responses.create({ model: "demo-chat", input: "hi", stream: true })) {
  kinds.push(event.type);
}
assert.equal(kinds.at(0), "response.created");
assert.equal(kinds.at(-1), "response.completed");

await assert.rejects(
  new OpenAI({ baseURL: `http://${host}/v1`, apiKey: "wrong" }).chat.completions.create({ model: "demo-chat", messages }),
  OpenAI.AuthenticationError,
);
await assert.rejects(client.chat.completions.create({ model: "gpt-0", messages }), OpenAI.NotFoundError);
console.log("ok");
