#!/usr/bin/env python3
"""Golden values of PyTorch for Imprint's tests: golden.py OUT.json

Written by PyTorch 2.11 on a CPU in float32. The file holds, for each optimiser, the parameters after each of
ten steps; for each schedule, its rates; for each module, a state dict, inputs, outputs and gradients of
sum(output * weights); for each loss, its value and gradient. Arrays are {"shape": [...], "values": [...]}.
"""
import json
import math
import sys

import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)


def array(t):
    t = t.detach()
    return {"shape": list(t.shape), "values": [float(f"{v:.9g}") for v in t.reshape(-1).tolist()]}


def optimisers():
    rate = [0.05 * (1 + 0.1 * t) for t in range(1, 11)]
    cases = {
        "sgd_momentum": (torch.optim.SGD, dict(momentum=0.9, weight_decay=0.01)),
        "sgd_nesterov": (torch.optim.SGD, dict(momentum=0.9, nesterov=True, weight_decay=0.01)),
        "rmsprop": (torch.optim.RMSprop, dict(alpha=0.9, weight_decay=0.02)),
        "rmsprop_centred_momentum": (
            torch.optim.RMSprop, dict(alpha=0.9, momentum=0.9, centered=True, weight_decay=0.02)),
        "adagrad": (torch.optim.Adagrad,
                    dict(lr_decay=0.1, initial_accumulator_value=0.2, weight_decay=0.02)),
        "adadelta": (torch.optim.Adadelta, dict(weight_decay=0.02)),
        "adam": (torch.optim.Adam, dict(betas=(0.9, 0.9), weight_decay=0.1)),
        "adam_amsgrad": (torch.optim.Adam, dict(betas=(0.9, 0.9), weight_decay=0.1, amsgrad=True)),
        "adam_w": (torch.optim.AdamW, dict(betas=(0.9, 0.9), weight_decay=0.1)),
        "adam_w_amsgrad": (torch.optim.AdamW, dict(betas=(0.9, 0.9), weight_decay=0.1, amsgrad=True)),
        "adamax": (torch.optim.Adamax, dict(weight_decay=0.02)),
        "nadam": (torch.optim.NAdam, dict(weight_decay=0.05)),
        "nadam_decoupled": (torch.optim.NAdam, dict(weight_decay=0.05, decoupled_weight_decay=True)),
        "radam": (torch.optim.RAdam, dict(weight_decay=0.05)),
        "adafactor": (torch.optim.Adafactor, dict(weight_decay=0.01)),
    }
    if hasattr(torch.optim, "Muon"):
        cases["muon"] = (torch.optim.Muon, dict())
        cases["muon_match"] = (torch.optim.Muon, dict(adjust_lr_fn="match_rms_adamw"))
    scale = {"rmsprop": 0.2, "rmsprop_centred_momentum": 0.2, "adadelta": 20, "adafactor": 0.4, "muon": 0.4,
             "muon_match": 0.4}
    out = {}
    for name, (kind, options) in cases.items():
        shapes = [(3, 5), (5, 3)] if name.startswith("muon") else [(3, 5), (5, 3), (7,)]
        params = [nn.Parameter(torch.randn(s) * 0.5) for s in shapes]
        first = [array(p) for p in params]
        optimiser = kind(params, lr=0.05, **options)
        steps = []
        for t in range(10):
            used = rate[t] * scale.get(name, 1)
            optimiser.param_groups[0]["lr"] = used
            grads = [torch.randn(s) * 0.5 for s in shapes]
            for p, g in zip(params, grads):
                p.grad = g.clone()
            optimiser.step()
            steps.append({"rate": used, "gradients": [array(g) for g in grads],
                          "parameters": [array(p) for p in params]})
        out[name] = {"options": {k: str(v) for k, v in options.items()}, "initial": first, "steps": steps}
    return out


def schedules():
    S = torch.optim.lr_scheduler
    cases = {
        "linear": (2.0, 25, lambda o: S.LinearLR(o, start_factor=0.25, end_factor=1.0, total_iters=10)),
        "exponential": (2.0, 25, lambda o: S.ExponentialLR(o, 0.9)),
        "step": (2.0, 25, lambda o: S.StepLR(o, 7)),
        "multi_step": (2.0, 25, lambda o: S.MultiStepLR(o, [3, 4, 20], 0.5)),
        "polynomial": (2.0, 25, lambda o: S.PolynomialLR(o, 10, 2.0)),
        "cosine": (2.0, 21, lambda o: S.CosineAnnealingLR(o, 20, 0.5)),
        "cosine_restarts_1": (2.0, 60, lambda o: S.CosineAnnealingWarmRestarts(o, 4, 1, 0.5)),
        "cosine_restarts_2": (2.0, 60, lambda o: S.CosineAnnealingWarmRestarts(o, 4, 2, 0.5)),
        "one_cycle": (1.0, 50, lambda o: S.OneCycleLR(o, 1.0, 50)),
        "one_cycle_linear": (1.0, 50, lambda o: S.OneCycleLR(o, 1.0, 50, anneal_strategy="linear")),
        "one_cycle_three": (1.0, 50, lambda o: S.OneCycleLR(o, 1.0, 50, three_phase=True)),
    }
    out = {}
    for name, (lr, count, make) in cases.items():
        optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr, momentum=0.9)
        schedule = make(optimiser)
        rates = []
        for i in range(count):
            rates.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            if i + 1 < count:
                schedule.step()
        out[name] = rates
    return out


def probe(shape, seed):
    n = math.prod(shape)
    return torch.tensor([math.cos(i * 1.3 + seed) for i in range(n)], dtype=torch.float32).reshape(shape)


def record(module, forward, *inputs):
    """State dict before, inputs, outputs, gradients of sum(output * probe), state dict after."""
    before = {k: array(v.float()) for k, v in module.state_dict().items()}
    inputs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    y = forward(module, *inputs)
    loss = (y * probe(tuple(y.shape), 0)).sum()
    loss.backward()
    return {"state": before, "inputs": [array(x) for x in inputs], "output": array(y),
            "input_gradients": [array(x.grad) if x.grad is not None else None for x in inputs],
            "gradients": {k: array(p.grad) for k, p in module.named_parameters() if p.grad is not None},
            "after": {k: array(v.float()) for k, v in module.state_dict().items()}}


def modules():
    call = lambda m, *x: m(*x)
    r = torch.randn
    out = {
        "linear": record(nn.Linear(4, 3), call, r(5, 4)),
        "bilinear": record(nn.Bilinear(3, 2, 4), call, r(5, 3), r(5, 2)),
        "embedding": record(nn.Embedding(6, 3), call, torch.tensor([[4, 1, 0], [4, 5, 2]])),
        "conv1d": record(nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), call, r(2, 4, 9)),
        "conv2d": record(nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), call, r(2, 4, 7, 6)),
        "batch_norm_train": record(nn.BatchNorm2d(3), call, r(4, 3, 2, 5)),
        "batch_norm_eval": record(nn.BatchNorm1d(3).eval(), call, r(4, 3)),
        "group_norm": record(nn.GroupNorm(2, 4), call, r(2, 4, 3)),
        "instance_norm": record(nn.InstanceNorm1d(4), call, r(2, 4, 3)),
        "layer_norm": record(nn.LayerNorm(5), call, r(3, 5)),
        "rms_norm": record(nn.RMSNorm(5, eps=1e-5), call, r(3, 5)),
        "prelu": record(nn.PReLU(4), call, r(2, 4, 3)),
        "rnn": record(nn.RNN(3, 4, 2, batch_first=True), lambda m, x: m(x)[0], r(2, 5, 3)),
        "gru": record(nn.GRU(3, 4, 2, batch_first=True, bidirectional=True), lambda m, x: m(x)[0], r(2, 5, 3)),
        "lstm": record(nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), lambda m, x: m(x)[0],
                       r(2, 5, 3)),
        "attention": record(nn.MultiheadAttention(8, 2, batch_first=True),
                            lambda m, x: m(x, x, x, need_weights=False)[0], r(2, 5, 8)),
        "attention_cross": record(nn.MultiheadAttention(8, 2, batch_first=True),
                                  lambda m, x, y: m(x, y, y, need_weights=False)[0], r(2, 5, 8), r(2, 4, 8)),
    }
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    out["attention_causal"] = record(
        nn.MultiheadAttention(8, 2, batch_first=True),
        lambda m, x: m(x, x, x, attn_mask=causal, need_weights=False)[0], r(2, 5, 8))
    for name, options in {"transformer": dict(), "transformer_norm_first": dict(norm_first=True, activation="gelu")
                          }.items():
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, **options)
        for p in layer.parameters():
            with torch.no_grad():
                p.add_(torch.randn_like(p) * 0.1)
        out[name] = record(layer, call, r(2, 5, 8))
    layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    out["decoder"] = record(layer, call, r(2, 5, 8), r(2, 4, 8))
    return out


def losses():
    x, t = torch.randn(3, 4), torch.randn(3, 4)
    p, q = torch.rand(3, 4) * 0.9 + 0.05, torch.rand(3, 4) * 0.9 + 0.05
    label = torch.tensor([[1., -1, 1, 1], [-1, 1, -1, -1], [1, 1, -1, 1]])
    classes, rows = torch.tensor([2, -100, 1]), torch.tensor([1., -1, 1])
    w = torch.tensor([0.5, 1.5, 2, 1])
    var = torch.rand(3, 4) + 0.1
    z = torch.randn(3, 4)
    log = torch.log_softmax
    cases = {
        "mse": (nn.MSELoss(), [x, t]), "l1": (nn.L1Loss(), [x, t]),
        "smooth_l1": (nn.SmoothL1Loss(beta=0.5), [x, t]), "huber": (nn.HuberLoss(delta=0.7), [x, t]),
        "cross_entropy": (nn.CrossEntropyLoss(weight=w, label_smoothing=0.2), [x, classes]),
        "cross_entropy_soft": (nn.CrossEntropyLoss(weight=w, label_smoothing=0.2), [x, q]),
        "nll": (nn.NLLLoss(weight=w), [log(x, 1), classes]),
        "bce": (nn.BCELoss(), [p, q]),
        "bce_logits": (nn.BCEWithLogitsLoss(pos_weight=w), [x, q]),
        "kl": (nn.KLDivLoss(), [log(x, 1), q]),
        "kl_log": (nn.KLDivLoss(reduction="batchmean", log_target=True), [log(x, 1), log(t, 1)]),
        "poisson": (nn.PoissonNLLLoss(full=True), [x, q * 5]),
        "gaussian": (nn.GaussianNLLLoss(full=True), [x, t, var]),
        "hinge_embedding": (nn.HingeEmbeddingLoss(margin=1.5), [x, label]),
        "margin_ranking": (nn.MarginRankingLoss(margin=0.25), [x, t, label]),
        "triplet": (nn.TripletMarginLoss(margin=1.5, p=2, swap=True), [x, t, z]),
        "cosine_embedding": (nn.CosineEmbeddingLoss(margin=0.1), [x, t, rows]),
    }
    out = {}
    for name, (loss, inputs) in cases.items():
        inputs = [v.clone() for v in inputs]
        inputs[0].requires_grad_(True)
        value = loss(*inputs)
        value.backward()
        out[name] = {"inputs": [array(v) for v in inputs], "value": float(value.detach()),
                     "gradient": array(inputs[0].grad)}
    return out


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        json.dump({"torch": torch.__version__, "optimisers": optimisers(), "schedules": schedules(),
                   "modules": modules(), "losses": losses()}, file)
