"""Writes a small model for llama.cpp whose behaviour is designed, not trained. Downloads nothing.

Its embeddings are one-hot, attention and feed-forward layers are zero, and the output matrix defines
which token follows which. So it depends on the last token only and is deterministic: after the prompt
it emits SENTENCE and stops.

The chat template ends the prompt with <|rdl_call|> when there are tools and the last message is the
user's, else with <|rdl_final|>. After the first the model calls a tool with arguments that fit its
schema, with the harmless COMMAND for each free text; after the tool's result it emits SENTENCE. Of
several tools it calls the one whose name begins with w and has an f after a _.

Usage: make_model.py MODEL.gguf TEMPLATE.jinja
"""

import sys
from pathlib import Path

import gguf
import numpy

SENTENCE = [
    *("All", "\u2581checks", "\u2581passed", "\u2581and", "\u2581the"),
    *("\u2581change", "\u2581is", "\u2581ready", "."),
]
COMMAND = "echo\u2581raddle"
EMBEDDING, HEAD, FEED_FORWARD, CONTEXT = 512, 32, 32, 131072

#: llama.cpp treats <|call|>, <|end|> and <|return|> as the end of a response by their texts, and fails
#: when a grammar does not expect one. So these tokens have other names.
CALL, FINAL = "<|rdl_call|>", "<|rdl_final|>"
START, END = "<|im_start|>", "<|im_end|>"
NEVER, HARDLY, SURE = -30, -12, 25


def vocabulary():
    """Returns pairs of a token and its type."""
    kinds = gguf.TokenType
    yield "<unk>", kinds.UNKNOWN
    for token in ("<s>", "</s>"):
        yield token, kinds.CONTROL
    for byte in range(256):
        yield f"<0x{byte:02X}>", kinds.BYTE
    for token in (START, END, CALL, FINAL):
        yield token, kinds.CONTROL
    for token in ("<tool_call>", "</tool_call>"):
        yield token, kinds.USER_DEFINED
    yield "\u2581", kinds.NORMAL
    for letter in range(33, 127):
        yield chr(letter), kinds.NORMAL
    for word in [*SENTENCE, COMMAND]:
        if len(word) > 1:
            yield word, kinds.NORMAL


def follows(index):
    """Returns the output matrix: the likelihood of a token (row) after another (column)."""
    likely = numpy.zeros((len(index), EMBEDDING), numpy.float32)

    def always(token, value):
        likely[index[token], :] = value

    def after(before, token, value=SURE):
        likely[index[token], index[before]] = value

    for token in ("<unk>", "<s>", "</s>", START, CALL, FINAL):
        always(token, NEVER)
    for byte in range(256):
        always(f"<0x{byte:02X}>", HARDLY)
    for token in ("<tool_call>", "</tool_call>", "\\"):
        always(token, HARDLY)
    always("\u2581", -6)
    always(END, 1)
    always('"', 2.5)
    # Objects and arrays end soon, but arrays are not empty.
    always("}", 8)
    always("]", 8)
    after("[", "]", HARDLY)

    after(CALL, "<tool_call>")
    after("<tool_call>", "<0x0A>")
    after("}", "<0x0A>", 9)
    after("<0x0A>", "</tool_call>", 15)
    after("</tool_call>", END)
    after('"', COMMAND)
    after(COMMAND, '"')
    after('"', "w", 20)
    after("_", "f", 20)
    after(FINAL, SENTENCE[0])
    for before, token in zip(SENTENCE, SENTENCE[1:]):
        after(before, token)
    after(SENTENCE[-1], END)
    return likely


def write(path, template):
    tokens = list(vocabulary())
    index = {token: at for at, (token, _) in enumerate(tokens)}
    count = len(tokens)
    if count > EMBEDDING:
        sys.exit(f"{count} tokens do not fit an embedding of {EMBEDDING}")

    model = gguf.GGUFWriter(path, "llama")
    model.add_name("raddle-bigram")
    model.add_context_length(CONTEXT)
    model.add_embedding_length(EMBEDDING)
    model.add_block_count(1)
    model.add_feed_forward_length(FEED_FORWARD)
    model.add_head_count(1)
    model.add_head_count_kv(1)
    model.add_key_length(HEAD)
    model.add_value_length(HEAD)
    model.add_rope_dimension_count(HEAD)
    model.add_layer_norm_rms_eps(1e-6)
    model.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    model.add_vocab_size(count)
    model.add_tokenizer_model("llama")
    model.add_tokenizer_pre("default")
    model.add_token_list([token.encode() for token, _ in tokens])
    model.add_token_scores([-float(at) for at in range(count)])
    model.add_token_types([int(kind) for _, kind in tokens])
    model.add_bos_token_id(index["<s>"])
    model.add_eos_token_id(index[END])
    model.add_unk_token_id(index["<unk>"])
    model.add_add_bos_token(False)
    model.add_add_space_prefix(False)
    model.add_chat_template(template)

    def zeros(*shape):
        return numpy.zeros(shape, numpy.float16)

    model.add_tensor("token_embd.weight", numpy.eye(count, EMBEDDING, dtype=numpy.float16))
    model.add_tensor("output.weight", follows(index).astype(numpy.float16))
    norm = numpy.full(EMBEDDING, EMBEDDING**-0.5, numpy.float32)
    model.add_tensor("output_norm.weight", norm)
    for name in ("attn_q", "attn_k", "attn_v"):
        model.add_tensor(f"blk.0.{name}.weight", zeros(HEAD, EMBEDDING))
    model.add_tensor("blk.0.attn_output.weight", zeros(EMBEDDING, HEAD))
    model.add_tensor("blk.0.ffn_gate.weight", zeros(FEED_FORWARD, EMBEDDING))
    model.add_tensor("blk.0.ffn_up.weight", zeros(FEED_FORWARD, EMBEDDING))
    model.add_tensor("blk.0.ffn_down.weight", zeros(EMBEDDING, FEED_FORWARD))
    for name in ("attn_norm", "ffn_norm"):
        model.add_tensor(f"blk.0.{name}.weight", numpy.ones(EMBEDDING, numpy.float32))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


def main():
    path, template = sys.argv[1:]
    write(path, Path(template).read_text())


main()
