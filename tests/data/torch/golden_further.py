#!/usr/bin/env python3
"""Golden values of PyTorch for the modules that golden.py and golden_layers.py lack: golden_further.py OUT.json

Written by PyTorch 2.11 on a CPU in float32. The form is that of golden.py. Modules that PyTorch lacks are
composed here of its own operators, under the names that Imprint's headers state.
"""
import json
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn

from golden import array, record

torch.manual_seed(3)
torch.set_num_threads(1)


class Composed(nn.Module):
    """Children by name, and what they compute."""

    def __init__(self, compute, **children):
        super().__init__()
        for name, child in children.items():
            if isinstance(child, nn.Module):
                self.add_module(name, child)
            else:
                self.register_parameter(name, nn.Parameter(child))
        self.compute = compute

    def forward(self, *inputs):
        return self.compute(self, *inputs)


def turned(x):
    """Rotary positions: halves, as in LLaMA."""
    steps, extent = x.shape[-2:]
    i = torch.arange(extent // 2, dtype=torch.float32)
    angle = torch.arange(steps, dtype=torch.float32)[:, None] * 10000.0 ** (-2 * i / extent)
    a, b = x[..., : extent // 2], x[..., extent // 2:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def attention(extent, heads, key_heads, rotary=False, alibi=False):
    """MultiheadAttention with fewer key heads, rotary positions or biases by distance."""
    each = extent // heads
    sizes = [extent, key_heads * each, key_heads * each]

    def compute(m, x):
        parts = F.linear(x, m.in_proj_weight, m.in_proj_bias).split(sizes, -1)
        q, k, v = (p.reshape(*p.shape[:2], -1, each).transpose(1, 2) for p in parts)
        if rotary:
            q, k = turned(q), turned(k)
        mask = None
        if alibi:
            at = torch.arange(x.shape[1], dtype=torch.float32)
            slopes = 2.0 ** (-8 * (torch.arange(heads) + 1) / heads)
            mask = -slopes[:, None, None] * (at[:, None] - at[None, :]).abs()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=key_heads != heads)
        return m.out_proj(y.transpose(1, 2).flatten(2))

    return Composed(compute, in_proj_weight=torch.randn(sum(sizes), extent) * 0.4,
                    in_proj_bias=torch.randn(sum(sizes)) * 0.1, out_proj=nn.Linear(extent, extent))


def deformed(weight, bias, x, offset, mask, padding):
    """Deformable convolution by grid_sample, one part, stride 1."""
    out, _, high, wide = weight.shape
    batch, _, rows, columns = x.shape
    to_rows, to_columns = offset.shape[2:]
    y = bias[None, :, None, None]
    down = torch.arange(to_rows, dtype=torch.float32)[:, None] - padding
    right = torch.arange(to_columns, dtype=torch.float32)[None, :] - padding
    for k in range(high * wide):
        at_y = down + k // wide + offset[:, 2 * k]
        at_x = right + k % wide + offset[:, 2 * k + 1]
        grid = torch.stack([2 * at_x / (columns - 1) - 1, 2 * at_y / (rows - 1) - 1], -1)
        seen = F.grid_sample(x, grid, align_corners=True) * mask[:, k:k + 1]
        y = y + torch.einsum("oc,bchw->bohw", weight[:, :, k // wide, k % wide], seen)
    return y


def shaken(module):
    """Every parameter moved, so that none is 0 or 1."""
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return module


def transformers():
    r = torch.randn
    call = lambda m, *x: m(*x)
    options = dict(dropout=0.0, batch_first=True)
    future = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    encoder = lambda **more: nn.TransformerEncoderLayer(8, 2, 16, **options, **more)
    decoder = lambda **more: nn.TransformerDecoderLayer(8, 2, 16, **options, **more)
    seen = lambda m, x, y: m(x, y, tgt_mask=future)
    padding = torch.tensor([[False, False, False, False, True], [False, False, True, True, True]])
    bias = r(5, 5)
    return {
        "decoder": record(shaken(decoder()), call, r(2, 5, 8), r(2, 4, 8)),
        "decoder_norm_first_causal": record(shaken(decoder(norm_first=True)), seen, r(2, 5, 8), r(2, 4, 8)),
        "encoder_stack": record(shaken(nn.TransformerEncoder(encoder(), 2, enable_nested_tensor=False)), call,
                                r(2, 5, 8)),
        "encoder_stack_norm_first_causal": record(
            shaken(nn.TransformerEncoder(encoder(norm_first=True, activation="gelu"), 2, nn.LayerNorm(8),
                                         enable_nested_tensor=False)),
            lambda m, x: m(x, mask=future), r(2, 5, 8)),
        "decoder_stack": record(shaken(nn.TransformerDecoder(decoder(), 2)), seen, r(2, 5, 8), r(2, 4, 8)),
        "feed_forward": record(
            Composed(lambda m, x: m.linear2(F.gelu(m.linear1(x))), linear1=nn.Linear(4, 6),
                     linear2=nn.Linear(6, 4)), call, r(2, 3, 4)),
        "gated_feed_forward": record(
            Composed(lambda m, x: m.down_proj(F.silu(m.gate_proj(x)) * m.up_proj(x)),
                     gate_proj=nn.Linear(4, 6, bias=False), up_proj=nn.Linear(4, 6, bias=False),
                     down_proj=nn.Linear(6, 4, bias=False)), call, r(2, 3, 4)),
        "attention_no_bias": record(nn.MultiheadAttention(8, 2, bias=False, batch_first=True),
                                    lambda m, x: m(x, x, x, need_weights=False)[0], r(2, 5, 8)),
        "attention_padding": record(
            nn.MultiheadAttention(8, 2, batch_first=True),
            lambda m, x: m(x, x, x, key_padding_mask=padding, need_weights=False)[0], r(2, 5, 8)),
        "attention_bias": record(nn.MultiheadAttention(8, 2, batch_first=True),
                                 lambda m, x, b: m(x, x, x, attn_mask=b, need_weights=False)[0], r(2, 5, 8),
                                 bias),
        "attention_grouped": record(attention(8, 4, 2), call, r(2, 5, 8)),
        "attention_rotary": record(attention(8, 2, 2, rotary=True), call, r(2, 5, 8)),
        "attention_alibi": record(attention(8, 2, 2, alibi=True), call, r(2, 5, 8)),
        "learned_positions": record(Composed(lambda m, x: x + m.weight[: x.shape[1]], weight=r(6, 4)), call,
                                    r(2, 5, 4)),
        "embedding_padding": record(nn.Embedding(6, 3, padding_idx=1), call,
                                    torch.tensor([[4, 1, 0], [1, 5, 2]])),
    }


def layers():
    r = torch.randn
    call = lambda m, *x: m(*x)
    steps = lambda m, x: m(x)[0]
    kernel = r(3, 2, 2, 3) * 0.5
    return {
        "linear_no_bias": record(nn.Linear(4, 3, bias=False), call, r(2, 5, 4)),
        "bilinear_no_bias": record(nn.Bilinear(3, 2, 4, bias=False), call, r(5, 3), r(5, 2)),
        "conv2d_no_bias": record(nn.Conv2d(2, 3, 2, bias=False), call, r(2, 2, 4, 5)),
        "depthwise_separable": record(
            Composed(lambda m, x: m.pointwise(m.depthwise(x)), depthwise=nn.Conv2d(4, 4, 3, padding=1, groups=4),
                     pointwise=nn.Conv2d(4, 5, 1)), call, r(2, 4, 5, 6)),
        "deform_conv2d": record(
            Composed(lambda m, x, o, k: deformed(m.weight, m.bias, x, o, k, 1), weight=kernel, bias=r(3)), call,
            r(2, 2, 5, 6), r(2, 12, 6, 6) * 0.7, torch.rand(2, 6, 6, 6)),
        "rnn_relu": record(nn.RNN(3, 4, nonlinearity="relu", batch_first=True), steps, r(2, 5, 3)),
        "gru_no_bias": record(nn.GRU(3, 4, bias=False, batch_first=True), steps, r(2, 5, 3)),
        "lstm_no_bias": record(nn.LSTM(3, 4, 2, bias=False, bidirectional=True, batch_first=True), steps,
                               r(2, 5, 3)),
        "batch_norm_3d": record(nn.BatchNorm3d(3, momentum=0.3), call, r(2, 3, 2, 3, 2)),
        "batch_norm_plain": record(nn.BatchNorm1d(3, affine=False), call, r(5, 3)),
        "group_norm_plain": record(nn.GroupNorm(2, 4, affine=False), call, r(2, 4, 3)),
        "instance_norm_affine": record(shaken(nn.InstanceNorm2d(3, affine=True)), call, r(2, 3, 4, 2)),
        "rms_norm_default": record(shaken(nn.RMSNorm(5)), call, r(3, 5)),
        "prelu_one": record(nn.PReLU(), call, r(2, 4, 3)),
        "pad_constant": record(nn.ConstantPad2d((1, 1, 2, 2), 0.5), call, r(2, 2, 3, 4)),
        "pad_reflect": record(nn.ReflectionPad1d(2), call, r(2, 2, 5)),
        "pad_edge": record(nn.ReplicationPad2d((1, 1, 2, 2)), call, r(2, 2, 3, 4)),
        "pad_circular": record(nn.CircularPad2d(1), call, r(2, 2, 3, 4)),
        "global_avg_pool": record(Composed(lambda m, x: x.mean((2, 3))), call, r(2, 3, 4, 5)),
        "global_max_pool": record(Composed(lambda m, x: x.amax((2, 3))), call, r(2, 3, 4, 5)),
        "dropout_eval": record(nn.Dropout(0.5).eval(), call, r(2, 3)),
        "flatten": record(nn.Flatten(), call, r(2, 3, 2)),
        "sequential": record(
            shaken(nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Flatten(), nn.Linear(12, 4), nn.LayerNorm(4))), call, r(3, 1, 4, 4)),
    }


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        json.dump({"torch": torch.__version__, "modules": {**transformers(), **layers()}}, file)
