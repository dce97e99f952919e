"""Writes tests/golden/ops.txt: what torch makes of rows of the op table, in float64, values and gradients.

    python tests/interop/ops.py > tests/golden/ops.txt     (needs torch)

A row is known by its function and variant; operands and the weights of the outputs are those of tests/op_evaluate.cpp
(Philox, rounded to float32), so the file holds results only:
  row FUNCTION VARIANT     then: outputs..., and one line "gradient NUMBER..." for each floating-point operand
"""
import math

import numpy
import torch
import torch.nn.functional as F


def philox(counter, key):
    counter, key, mask = list(counter), list(key), 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & mask, (a >> 32) ^ counter[3] ^ key[1], a & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return counter


def word(seed, stream, element):
    return philox([element // 4, 0, stream, 0], [seed, 0])[element % 4]


def uniforms(shape, number, low, high):
    return [low + (high - low) * ((word(11, number, i) >> 8) / 2**24) for i in range(math.prod(shape))]


def real(*shape, low=-2.0, high=2.0):
    def make(number):
        values = numpy.array(uniforms(shape, number, low, high)).astype(numpy.float32).astype(numpy.float64)
        return torch.tensor(values).reshape(shape).requires_grad_()
    return make


def whole(*shape, low, high):
    return lambda number: torch.tensor([math.floor(v) for v in uniforms(shape, number, low, high)]).reshape(shape)


def show(name, tensor):
    print(name, *(f"{value:.9g}" for value in tensor.detach().flatten().tolist()))


def row(name, variant, operands, function):
    operands = [make(number) for number, make in enumerate(operands)]
    outputs = function(*operands)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    print("row", name, variant)
    total = 0
    for number, output in enumerate(outputs):
        weights = torch.tensor([(word(12, number, i) % 17 - 8) / 8 for i in range(output.numel())], dtype=output.dtype)
        total = total + (weights * output.flatten()).sum()
        show("output", output)
    total.backward()
    for operand in operands:
        if operand.requires_grad:
            show("gradient", operand.grad if operand.grad is not None else torch.zeros_like(operand))


def attention(causal, padded):
    """Of a sample's first `length` positions only; the others give 0."""
    def run(q, k, v, lengths, state):
        outputs = []
        for b in range(q.shape[0]):
            queries = min(q.shape[2], int(lengths[b])) if padded else q.shape[2]
            keys = min(k.shape[2], int(lengths[b])) if padded else k.shape[2]
            seen = torch.ones(queries, keys, dtype=torch.bool)
            out = torch.zeros_like(q[b])
            if queries:
                out = F.scaled_dot_product_attention(q[b:b+1, :, :queries], k[b:b+1, :, :keys], v[b:b+1, :, :keys],
                                                     attn_mask=seen.tril() if causal else seen)[0]
                out = F.pad(out, (0, 0, 0, q.shape[2] - queries))
            outputs.append(out)
        return torch.stack(outputs)
    return run


def self_attention(causal):
    def run(joint, lengths, state):
        q, k, v = (part.reshape(3, 4, 2, 3).transpose(1, 2) for part in joint.split(6, -1))
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(3, 4, 6)
    return run


B = 3
x = real(B, 4, 5, low=-4, high=4)
row("relu", "", [x], F.relu)
row("leaky_relu", "", [x], lambda x: F.leaky_relu(x, 0.1))
row("gelu", "", [x], F.gelu)
row("gelu_tanh", "", [x], lambda x: F.gelu(x, approximate="tanh"))
row("silu", "", [x], F.silu)
row("tanh", "", [x], torch.tanh)
row("sigmoid", "", [x], torch.sigmoid)
row("softplus", "", [x], F.softplus)
row("elu", "", [x], lambda x: F.elu(x, 1.3))

x = real(B, 4, 5)
row("var", "kept", [x], lambda x: x.var(-1, correction=0, keepdim=True))
row("max", "two dimensions", [x], lambda x: x.amax((1, 2)))
row("logsumexp", "kept", [x], lambda x: x.logsumexp(1, keepdim=True))

weight, bias = real(4, 5, low=-0.4, high=0.4), real(4, low=-0.5, high=0.5)
for variant, after in [("", lambda y: y), ("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu), ("tanh", torch.tanh),
                       ("gelu_tanh", lambda y: F.gelu(y, approximate="tanh"))]:
    row("linear", variant, [real(B, 2, 5), weight, bias], lambda x, w, b: after(F.linear(x, w, b)))
row("matmul", "broadcast both", [real(2, 1, 3, 5), real(4, 5, 2)], torch.matmul)

x, labels = real(B, 2, 6, low=-4, high=4), whole(B, 2, low=0, high=6)
row("softmax", "", [x], lambda x: F.softmax(x, -1))
row("softmax", "middle dimension", [x], lambda x: F.softmax(x, 1))
row("log_softmax", "", [x], lambda x: F.log_softmax(x, -1))
for variant, smoothing, reduction in [("rows", 0.0, "none"), ("sum", 0.0, "sum"), ("mean", 0.0, "mean"),
                                      ("smooth", 0.1, "none"), ("smooth mean", 0.3, "mean")]:
    def loss(x, y):
        out = F.cross_entropy(x.reshape(-1, 6), y.reshape(-1), ignore_index=2, label_smoothing=smoothing,
                              reduction=reduction)
        return out.reshape(B, 2) if reduction == "none" else out
    row("cross_entropy", variant, [x, labels], loss)
row("mse", "mean", [real(3, 4), real(3, 4)], F.mse_loss)
row("bce_with_logits", "mean", [real(3, 4), real(3, 4, low=0, high=1)], F.binary_cross_entropy_with_logits)
row("kl_div", "mean", [real(3, 4), real(3, 4)],
    lambda p, q: F.kl_div(F.log_softmax(q, -1), F.log_softmax(p, -1), reduction="batchmean", log_target=True))

x, parameter = real(B, 2, 8), real(8)
row("layer_norm", "", [x, parameter, parameter], lambda x, g, b: F.layer_norm(x, (8,), g, b))
row("layer_norm", "without parameters", [x], lambda x: F.layer_norm(x, (8,)))
row("rms_norm", "", [x, parameter], lambda x, g: F.rms_norm(x, (8,), g, eps=1e-3))
row("residual_norm", "without dropout", [x, parameter, x, parameter, parameter],
    lambda x, added, residual, g, b: F.layer_norm(residual + x + added, (8,), g, b))

words, ids, types = real(7, 4), whole(B, 5, low=0, high=7), whole(B, 5, low=0, high=2)
row("embedding", "", [words, ids], lambda table, index: F.embedding(index, table))
row("index_select", "", [real(B, 5, 2), whole(4, low=0, high=5)], lambda x, index: x.index_select(1, index))
row("embedding_sum", "", [words, real(6, 4), real(2, 4), ids, types],
    lambda w, p, t, i, j: F.embedding(i, w) + p[:5] + F.embedding(j, t))

q, k = real(B, 2, 4, 3), real(B, 2, 5, 3)
lengths, state = whole(B, low=0, high=5), whole(3, low=1, high=100)
row("attention", "", [q, k, k, lengths, state], attention(False, False))
row("attention", "causal", [q, k, k, lengths, state], attention(True, False))
row("attention", "lengths", [q, k, k, lengths, state], attention(False, True))
row("self_attention", "", [real(B, 4, 18), lengths, state], self_attention(False))
row("self_attention", "causal", [real(B, 4, 18), lengths, state], self_attention(True))
