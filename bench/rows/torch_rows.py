"""Every row as functions of torch tensors, in the forms that a peer may handle best: `parts` spells out the
formula, `op` calls torch's own operator. The first form, in f64, gives the expected outputs.
"""
import math

import torch
import torch.nn.functional as F

import many_tensors


def b1_parts(x, residual, gamma, beta):
    h = x + residual
    h = h - h.mean(-1, keepdim=True)
    return h * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-5) * gamma + beta


def b1_op(x, residual, gamma, beta):
    return F.layer_norm(x + residual, gamma.shape, gamma, beta, 1e-5)


def b2_op(scores, mask):
    return torch.softmax(scores * 0.125 + mask[:, None, None, :], -1)


def softmax(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def b2_parts(scores, mask):
    return softmax(scores * 0.125 + mask[:, None, None, :])


def b3e_parts(x, bias):
    h = x + bias
    return h * (1 + torch.erf(h * math.sqrt(0.5))) * 0.5


def b3e_op(x, bias):
    return F.gelu(x + bias)


def b3t_parts(x, bias):
    h = x + bias
    return h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h * h * h))) * 0.5


def b3t_op(x, bias):
    return F.gelu(x + bias, approximate="tanh")


def b4(dy, x, gamma, mean, rstd):
    normal = (x - mean[:, None]) * rstd[:, None]
    g = dy * gamma
    along = (g * normal).mean(1, keepdim=True)
    dx = (g - g.mean(1, keepdim=True) - normal * along) * rstd[:, None]
    return dx, (dy * normal).sum(0), dy.sum(0)


def logical_shift(x, count):
    return (x >> count) & ((1 << (32 - count)) - 1)


def as_signed(x):
    return x - (1 << 32) if x >= 1 << 31 else x


def kept_elements(shape, seed):
    """A tenth is dropped, by a hash of the index of 32 bits that wraps."""
    h = torch.arange(shape[0] * shape[1], dtype=torch.int32).reshape(shape) + seed
    h = (h ^ logical_shift(h, 16)) * as_signed(2246822507)
    h = (h ^ logical_shift(h, 13)) * as_signed(3266489909)
    h = h ^ logical_shift(h, 16)
    return logical_shift(h, 1) >= 214748365


def b5(x, residual, gamma, beta, seed):
    kept = kept_elements(x.shape, seed)
    h = torch.where(kept, x * (1 / 0.9), torch.zeros((), dtype=x.dtype)) + residual
    mean = h.mean(1, keepdim=True)
    centered = h - mean
    rstd = torch.rsqrt((centered * centered).mean(1, keepdim=True) + 1e-5)
    return centered * rstd * gamma + beta, kept.to(torch.uint8), mean[:, 0], rstd[:, 0]


def b5_op(x, residual, gamma, beta, seed):
    kept = kept_elements(x.shape, seed)
    h = torch.where(kept, x * (1 / 0.9), torch.zeros((), dtype=x.dtype)) + residual
    y, mean, rstd = torch.native_layer_norm(h, gamma.shape, gamma, beta, 1e-5)
    return y, kept.to(torch.uint8), mean[:, 0], rstd[:, 0]


def smoothed(logits, label, log_probability, probability):
    here = torch.arange(logits.shape[1], dtype=torch.int32) == label[:, None]
    at_label = torch.where(here, log_probability, torch.zeros((), dtype=logits.dtype)).sum(1)
    loss = -(0.9 * at_label + 0.1 * log_probability.mean(1))
    return loss, probability - 0.1 / logits.shape[1] - 0.9 * here.to(logits.dtype)


def t1_parts(logits, label):
    shifted = logits - logits.amax(1, keepdim=True)
    e = torch.exp(shifted)
    total = e.sum(1, keepdim=True)
    return smoothed(logits, label, shifted - torch.log(total), e / total)


def t1_op(logits, label):
    log_probability = torch.log_softmax(logits, 1)
    return smoothed(logits, label, log_probability, torch.exp(log_probability))


def t2_op(x):
    return torch.softmax(x, -1)


def d1(x, weight):
    return (x * weight).sum(1)


def d2(update, reset, candidate_x, candidate_h, state, attention):
    candidate = torch.tanh(candidate_x + torch.sigmoid(reset) * candidate_h)
    return state + torch.sigmoid(update) * attention[:, None] * (candidate - state)


def d3_masked(scores, length):
    inside = torch.arange(scores.shape[1], dtype=torch.int32) < length[:, None]
    return torch.where(inside, scores, torch.full((), -1e9, dtype=scores.dtype))


def d3_parts(keys, scores, length):
    return (keys * softmax(d3_masked(scores, length))[:, :, None]).sum(1)


def d3_op(keys, scores, length):
    weight = torch.softmax(d3_masked(scores, length), -1)
    return torch.bmm(weight[:, None, :], keys)[:, 0]


def d4_parts(x, alpha):
    centered = x - x.mean(0)
    gate = torch.sigmoid(centered * torch.rsqrt((centered * centered).mean(0) + 1e-9))
    return gate * x + (1 - gate) * alpha * x


def d4_op(x, alpha):
    variance, mean = torch.var_mean(x, 0, correction=0)
    gate = torch.sigmoid((x - mean) * torch.rsqrt(variance + 1e-9))
    return gate * x + (1 - gate) * alpha * x


def by_channel(x):
    return x[None, :, None, None]


def c1_parts(x, gamma, beta):
    mean = x.mean((0, 2, 3))
    centered = x - by_channel(mean)
    variance = (centered * centered).mean((0, 2, 3))
    scale = torch.rsqrt(variance + 1e-5) * gamma
    return torch.relu(centered * by_channel(scale) + by_channel(beta)), mean, variance


def c1_op(x, gamma, beta):
    variance, mean = torch.var_mean(x, (0, 2, 3), correction=0)
    return torch.relu(F.batch_norm(x, mean, variance, gamma, beta, eps=1e-5)), mean, variance


def c2(gates, c):
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def a1_parts(x, gamma, beta, mean, variance):
    value, gate = x.chunk(2, -1)
    h = (value * torch.sigmoid(gate) - mean) * (torch.rsqrt(variance + 1e-5) * gamma) + beta
    return h * torch.sigmoid(h)


def a1_op(x, gamma, beta, mean, variance):
    h = F.glu(x, -1).reshape(-1, gamma.shape[0])
    h = F.silu(F.batch_norm(h, mean, variance, gamma, beta, eps=1e-5))
    return h.reshape(*x.shape[:2], -1)


def a2_masked(scores, valid):
    return torch.where(valid[:, None, None, :], scores, torch.full((), -1e9, dtype=scores.dtype))


def a2_parts(scores, valid):
    return softmax(a2_masked(scores, valid))


def a2_op(scores, valid):
    return torch.softmax(a2_masked(scores, valid), -1)


def rms_norm(h, weight):
    return h * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-5) * weight


def l1_parts(x, residual, weight):
    h = x + residual
    return rms_norm(h, weight), h


def l1_op(x, residual, weight):
    h = x + residual
    return F.rms_norm(h, weight.shape, weight, 1e-5), h


def l2(gate, up):
    return F.silu(gate) * up


def turned(x):
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def l3(qkv, cosine, sine):
    q, k, v = (part.reshape(-1, 32, 128).transpose(0, 1) for part in qkv.chunk(3, 1))
    return (q * cosine + turned(q) * sine, k * cosine + turned(k) * sine, v.contiguous())


def quantised(y):
    scale = y.abs().amax(1, keepdim=True) / 127
    return torch.round(y / scale).to(torch.int8), scale[:, 0]


def l4_parts(x, weight):
    return quantised(rms_norm(x, weight))


def l4_op(x, weight):
    return quantised(F.rms_norm(x, weight.shape, weight, 1e-5))


def l5_parts(logits, target):
    top = logits.amax(1)
    total = torch.exp(logits - top[:, None]).sum(1)
    return torch.log(total) + top - logits.gather(1, target[:, None].long())[:, 0]


def l5_op(logits, target):
    return torch.logsumexp(logits, 1) - logits.gather(1, target[:, None].long())[:, 0]


def l6(logits):
    chosen, expert = torch.topk(torch.softmax(logits, 1), 8, 1)
    return chosen / chosen.sum(1, keepdim=True), expert.to(torch.int32)


def l7_parts(*tensors):
    *tensors, mean_correction, square_correction = tensors
    n = len(tensors) // 4
    results = [[], [], []]
    for p, g, m, v in zip(tensors[:n], tensors[n:2 * n], tensors[2 * n:3 * n], tensors[3 * n:]):
        m = m * many_tensors.MEAN_KEPT + g * (1 - many_tensors.MEAN_KEPT)
        v = v * many_tensors.SQUARE_KEPT + g * g * (1 - many_tensors.SQUARE_KEPT)
        step = m / mean_correction / (torch.sqrt(v / square_correction) + many_tensors.EPSILON)
        p = p - many_tensors.LEARNING_RATE * (step + many_tensors.DECAY * p)
        for result, x in zip(results, [p, m, v]):
            result.append(x)
    return tuple(x for result in results for x in result)


def l8_parts(*gradients):
    norm = torch.sqrt(sum((g * g).sum() for g in gradients))
    scale = torch.clamp(many_tensors.MOST_NORM / (norm + 1e-6), max=1)
    return (*(g * scale for g in gradients), norm)


def l8_foreach(*gradients):
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    scale = torch.clamp(many_tensors.MOST_NORM / (norm + 1e-6), max=1)
    return (*torch._foreach_mul(gradients, scale), norm)


def x1_parts(x, gamma, beta):
    h = x.permute(0, 2, 3, 1)
    h = h - h.mean(-1, keepdim=True)
    return h * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6) * gamma + beta


def x1_op(x, gamma, beta):
    return F.layer_norm(x.permute(0, 2, 3, 1), gamma.shape, gamma, beta, 1e-6)


def x2(x, gamma, beta):
    norm = torch.sqrt((x * x).sum((1, 2), keepdim=True))
    response = norm / (norm.mean(-1, keepdim=True) + 1e-6)
    return x * response * gamma + beta + x


def u1_parts(x, gamma, beta):
    h = x.reshape(x.shape[0], 32, -1)
    h = h - h.mean(-1, keepdim=True)
    h = (h * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-5)).reshape(x.shape)
    return F.silu(h * by_channel(gamma) + by_channel(beta))


def u1_op(x, gamma, beta):
    return F.silu(F.group_norm(x, 32, gamma, beta, 1e-5))


def u2_parts(x, branch, gate, shift, scale):
    h = x + branch * gate[:, None]
    centered = h - h.mean(-1, keepdim=True)
    normal = centered * torch.rsqrt((centered * centered).mean(-1, keepdim=True) + 1e-6)
    return normal * (1 + scale[:, None]) + shift[:, None], h


def u2_op(x, branch, gate, shift, scale):
    h = x + branch * gate[:, None]
    normal = F.layer_norm(h, h.shape[-1:], eps=1e-6)
    return normal * (1 + scale[:, None]) + shift[:, None], h


def e1_op(words, positions, types, word, position, type_, gamma, beta):
    h = F.embedding(word, words) + F.embedding(position, positions) + F.embedding(type_, types)
    return F.layer_norm(h, gamma.shape, gamma, beta, 1e-12)


def e1_parts(words, positions, types, word, position, type_, gamma, beta):
    h = F.embedding(word, words) + F.embedding(position, positions) + F.embedding(type_, types)
    h = h - h.mean(-1, keepdim=True)
    return h * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-12) * gamma + beta


def e2_parts(table, bag):
    return F.embedding(bag, table).sum(1)


def e2_op(table, bag):
    return F.embedding_bag(bag, table, mode="sum")


def r1(dy, x, gamma, mean, rstd):
    normal = (x - by_channel(mean)) * by_channel(rstd)
    dbeta, dgamma = dy.sum((0, 2, 3)), (dy * normal).sum((0, 2, 3))
    count = dy.numel() // dy.shape[1]
    inner = dy - by_channel(dbeta / count) - normal * by_channel(dgamma / count)
    return inner * by_channel(gamma * rstd), dgamma, dbeta


def forms_of(row):
    """Form -> function."""
    found = {name.partition("_")[2] or "parts": function for name, function in globals().items()
             if name.partition("_")[0] == row and name.partition("_")[2] in
             ("", "parts", "op", "foreach")}
    return dict(sorted(found.items(), key=lambda item: item[0] != "parts"))
