"""Writes a tiny llama model with random weights (seeded): a real model file whose text is noise. Argument: OUT."""
import sys

import gguf
import numpy as np

# Small enough to be made in a second, slow enough (some 1,000 tokens a second) that a long answer takes long.
WIDTH, LAYERS, HEADS, CONTEXT = 128, 4, 4, 65_536
FEED_FORWARD = 3 * WIDTH

special = [b"<unk>", b"<s>", b"</s>"]
byte_tokens = [f"<0x{value:02X}>".encode() for value in range(256)]
words = ["\u2581" + word for word in "sea wall tide stone light harbour boat wave".split()]
letters = ["\u2581", *"abcdefghijklmnopqrstuvwxyz"]
tokens = special + byte_tokens + [word.encode() for word in words + letters]
kinds = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
kinds += [gguf.TokenType.NORMAL] * (len(tokens) - len(kinds))

writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_name("seawall-tiny")
writer.add_context_length(CONTEXT)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(FEED_FORWARD)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_vocab_size(len(tokens))
writer.add_file_type(gguf.LlamaFileType.ALL_F32)
writer.add_tokenizer_model("llama")
writer.add_token_list(tokens)
writer.add_token_scores([-float(index) for index in range(len(tokens))])
writer.add_token_types(kinds)
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)
writer.add_unk_token_id(0)
writer.add_chat_template("{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}assistant:")

random = np.random.default_rng(7)


def weights(name, *shape):
    writer.add_tensor(name, (random.standard_normal(shape) * 0.05).astype(np.float32))


def ones(name):
    writer.add_tensor(name, np.ones(WIDTH, np.float32))


weights("token_embd.weight", len(tokens), WIDTH)
weights("output.weight", len(tokens), WIDTH)
ones("output_norm.weight")
for layer in range(LAYERS):
    prefix = f"blk.{layer}."
    ones(prefix + "attn_norm.weight")
    ones(prefix + "ffn_norm.weight")
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        weights(f"{prefix}{name}.weight", WIDTH, WIDTH)
    weights(prefix + "ffn_gate.weight", FEED_FORWARD, WIDTH)
    weights(prefix + "ffn_up.weight", FEED_FORWARD, WIDTH)
    weights(prefix + "ffn_down.weight", WIDTH, FEED_FORWARD)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
print("ok")
