#!/usr/bin/env python3
"""Golden values of PyTorch for further layers and losses: golden_layers.py OUT.json

Written by PyTorch 1.13 on a CPU in float32; the formulas are those of 2.x. The form is that of golden.py.
"""
import json
import sys

import torch
from torch import nn

from golden import array, record

torch.manual_seed(2)


def parametrised(recorded):
    """The names that weight norm has in PyTorch 2.x (torch.nn.utils.parametrizations.weight_norm)."""
    names = {"weight_g": "parametrizations.weight.original0", "weight_v": "parametrizations.weight.original1"}
    for part in ("state", "gradients", "after"):
        recorded[part] = {names.get(k, k): v for k, v in recorded[part].items()}
    return recorded


def modules():
    call = lambda m, *x: m(*x)
    r = torch.randn
    out = {
        "conv3d": record(nn.Conv3d(4, 6, (2, 3, 2), stride=(1, 2, 1), padding=(0, 1, 1), groups=2), call,
                         r(2, 4, 4, 5, 3)),
        "conv2d_per_axis": record(nn.Conv2d(2, 3, (2, 3), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
                                  call, r(2, 2, 5, 8)),
        "conv2d_same": record(nn.Conv2d(2, 3, (2, 3), padding="same"), call, r(2, 2, 4, 5)),
        "conv1d_reflect": record(nn.Conv1d(2, 3, 3, padding=2, padding_mode="reflect"), call, r(2, 2, 6)),
        "conv1d_circular": record(nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular"), call, r(2, 2, 6)),
        "conv1d_replicate": record(nn.Conv1d(2, 3, 3, padding=2, padding_mode="replicate"), call, r(2, 2, 6)),
        "conv_transpose1d": record(nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1,
                                                      groups=2), call, r(2, 4, 5)),
        "conv_transpose2d": record(nn.ConvTranspose2d(3, 2, (3, 2), stride=(2, 3), padding=(1, 0),
                                                      dilation=(2, 1)), call, r(2, 3, 4, 3)),
        "conv_transpose3d": record(nn.ConvTranspose3d(2, 3, 2, stride=2), call, r(1, 2, 3, 2, 2)),
        "local_response_norm": record(nn.LocalResponseNorm(3, alpha=0.5, beta=0.75, k=1.5), call,
                                      r(2, 5, 3, 2)),
        "weight_norm": parametrised(record(nn.utils.weight_norm(nn.Linear(4, 3)), call, r(5, 4))),
        "weight_norm_conv": parametrised(record(nn.utils.weight_norm(nn.Conv1d(2, 3, 3)), call, r(2, 2, 5))),
        "spectral_norm": record(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)).eval(), call,
                                r(5, 4)),
        "spectral_norm_train": record(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), call,
                                      r(5, 4)),
        "lstm_projection": record(nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True, proj_size=2),
                                  lambda m, x: m(x)[0], r(2, 4, 3)),
        "max_pool2d": record(nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), call, r(2, 2, 6, 8)),
        "max_pool3d": record(nn.MaxPool3d(2), call, r(1, 2, 4, 5, 4)),
        "max_pool1d_dilated": record(nn.MaxPool1d(2, stride=2, dilation=3), call, r(2, 2, 9)),
        "avg_pool2d_ceil": record(nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True), call, r(2, 2, 6, 8)),
        "avg_pool2d_inside": record(nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True,
                                                 count_include_pad=False), call, r(2, 2, 6, 8)),
        "avg_pool1d": record(nn.AvgPool1d(2), call, r(2, 2, 7)),
        "lp_pool2d": record(nn.LPPool2d(3, 2), call, r(2, 2, 4, 6).abs()),
        "adaptive_avg_pool2d": record(nn.AdaptiveAvgPool2d((3, 2)), call, r(2, 2, 7, 6)),
        "adaptive_max_pool2d": record(nn.AdaptiveMaxPool2d((3, 4)), call, r(2, 2, 7, 6)),
        "nearest": record(nn.Upsample(size=(5, 8)), call, r(1, 2, 3, 4)),
        "linear": record(nn.Upsample(size=7, mode="linear"), call, r(1, 2, 4)),
        "bilinear": record(nn.Upsample(size=(5, 3), mode="bilinear"), call, r(1, 2, 3, 7)),
        "bilinear_corners": record(nn.Upsample(size=(5, 3), mode="bilinear", align_corners=True), call,
                                   r(1, 2, 3, 7)),
        "trilinear": record(nn.Upsample(size=(3, 2, 4), mode="trilinear"), call, r(1, 1, 2, 3, 3)),
        "bicubic": record(nn.Upsample(size=(7, 4), mode="bicubic"), call, r(1, 2, 4, 6)),
        "bicubic_corners": record(nn.Upsample(size=(7, 4), mode="bicubic", align_corners=True), call,
                                  r(1, 2, 4, 6)),
        "pixel_shuffle": record(nn.PixelShuffle(2), call, r(2, 8, 3, 2)),
        "pixel_unshuffle": record(nn.PixelUnshuffle(2), call, r(2, 2, 4, 6)),
        "unfold": record(nn.Unfold((2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)), call, r(2, 3, 4, 7)),
        "fold": record(nn.Fold((4, 7), (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)), call,
                       r(2, 18, 12)),
    }
    kinds = {"relu": nn.ReLU(), "leaky_relu": nn.LeakyReLU(0.2), "elu": nn.ELU(1.5), "selu": nn.SELU(),
             "gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh"), "silu": nn.SiLU(), "mish": nn.Mish(),
             "tanh": nn.Tanh(), "sigmoid": nn.Sigmoid(), "softplus": nn.Softplus(2), "softsign": nn.Softsign(),
             "hard_tanh": nn.Hardtanh(-0.5, 0.75), "hard_swish": nn.Hardswish(), "relu6": nn.ReLU6(),
             "celu": nn.CELU(1.5), "log_sigmoid": nn.LogSigmoid(), "hard_sigmoid": nn.Hardsigmoid(),
             "tanh_shrink": nn.Tanhshrink(), "hard_shrink": nn.Hardshrink(0.4),
             "soft_shrink": nn.Softshrink(0.4), "softmax": nn.Softmax(-1), "log_softmax": nn.LogSoftmax(-1),
             "softmin": nn.Softmin(-1), "glu": nn.GLU(), "threshold": nn.Threshold(0.25, -2)}
    for name, kind in kinds.items():
        out["activation_" + name] = record(kind, call, r(3, 8) * 2)
    return out


def losses():
    r = torch.randn
    x, label = r(3, 5), torch.tensor([4, 0, 2])
    many = torch.tensor([[3, 0, -1, 1, 2], [1, -1, 0, 2, 3], [4, 2, 0, 1, 3]])
    yes = torch.tensor([[1., 0, 0, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 0]])
    signs = 2 * yes - 1
    cases = {
        "multi_margin": (nn.MultiMarginLoss(margin=0.75), [x, label]),
        "multi_margin_square": (nn.MultiMarginLoss(p=2), [x, label]),
        "multilabel_margin": (nn.MultiLabelMarginLoss(), [x, many]),
        "multilabel_soft_margin": (nn.MultiLabelSoftMarginLoss(), [x, yes]),
        "soft_margin": (nn.SoftMarginLoss(), [x, signs]),
    }
    out = {}

    def add(name, inputs, value, gradient):
        out[name] = {"inputs": [array(v) for v in inputs], "value": float(value.detach()),
                     "gradient": array(gradient)}

    for name, (loss, inputs) in cases.items():
        inputs = [v.clone() for v in inputs]
        inputs[0].requires_grad_(True)
        value = loss(*inputs)
        value.backward()
        add(name, inputs, value, inputs[0].grad)
    # Inputs: logits [batch, steps, classes], targets, lengths of both.
    logits = r(3, 7, 5)
    targets = torch.tensor([[1, 2, 2], [3, 0, 0], [4, 4, 1]])
    steps, lengths = torch.tensor([7, 4, 5]), torch.tensor([3, 1, 2])
    for reduction in ("mean", "sum"):
        leaf = logits.clone().requires_grad_(True)
        value = nn.CTCLoss(reduction=reduction)(
            leaf.log_softmax(-1).transpose(0, 1), targets, steps, lengths)
        value.backward()
        add("ctc_" + reduction, [logits, targets, steps, lengths], value, leaf.grad)
    return out


def lbfgs():
    shapes = [(3, 5), (7,)]
    params = [nn.Parameter(torch.randn(s)) for s in shapes]
    curves = [torch.rand(s) * 3 + 0.2 for s in shapes]
    first = [array(p) for p in params]
    optimiser = torch.optim.LBFGS(params, lr=0.5, max_iter=1, history_size=3)
    steps = []
    for t in range(10):
        grads = [(p.detach() + 0.1 * p.detach() ** 3) * c for p, c in zip(params, curves)]
        for p, g in zip(params, grads):
            p.grad = g.clone()
        optimiser.step(lambda: torch.zeros(()))
        steps.append({"rate": 0.5, "gradients": [array(g) for g in grads],
                      "parameters": [array(p) for p in params]})
    return {"options": {}, "initial": first, "steps": steps}


def plateau():
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=0.5, patience=2, threshold=0.01, cooldown=1, min_lr=0.1)
    losses = [5, 4, 3.99, 3.98, 3.97, 3.97, 3.9, 3.9, 3.9, 3.9, 3.9, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    rates = []
    for loss in losses:
        schedule.step(loss)
        rates.append(optimiser.param_groups[0]["lr"])
    return {"losses": losses, "rates": rates}


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        json.dump({"torch": torch.__version__, "modules": modules(), "losses": losses(), "lbfgs": lbfgs(),
                   "plateau": plateau()}, file)
