#!/usr/bin/env python3
"""Golden values of PyTorch for the losses and the layer that the other scripts lack: golden_losses.py OUT.json

Written by PyTorch 1.13 on a CPU. The form is that of golden.py, in float32. PyTorch has RReLU in evaluation
here, and none of these losses: they are composed of its operators in float64, so that their digits are exact
in float32.
"""
import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

from golden import array, record

torch.manual_seed(4)
torch.set_num_threads(1)


def focal(gamma, alpha):
    """Lin et al. 2017, of logits; alpha below 0: no weights."""

    def loss(x, t):
        p = x.sigmoid()
        crossed = F.binary_cross_entropy_with_logits(x, t, reduction="none")
        y = crossed * (1 - (p * t + (1 - p) * (1 - t))) ** gamma
        return (y if alpha < 0 else (alpha * t + (1 - alpha) * (1 - t)) * y).mean()

    return loss


def dice(smooth, squares):
    """Milletari et al. 2016, of the samples of a batch."""

    def loss(p, t):
        p, t = p.flatten(1), t.flatten(1)
        sizes = (p ** 2 + t ** 2 if squares else p + t).sum(1)
        return (1 - (2 * (p * t).sum(1) + smooth) / (sizes + smooth)).mean()

    return loss


def contrastive(margin):
    """Hadsell et al. 2006."""

    def loss(a, b, same):
        d = F.pairwise_distance(a, b)
        return (same * d ** 2 + (1 - same) * F.relu(margin - d) ** 2).mean() / 2

    return loss


def hinge(score, label):
    return F.relu(1 - label * score).mean()


def transducer(blank, reduction):
    """Graves 2012: the sum over paths, cell by cell."""

    def loss(logits, target, steps, lengths):
        logs = logits.log_softmax(-1)
        found = []
        for b in range(len(logits)):
            row = {}
            for t in range(int(steps[b])):
                for u in range(int(lengths[b]) + 1):
                    ways = []
                    if t > 0:
                        ways.append(row[t - 1, u] + logs[b, t - 1, u, blank])
                    if u > 0:
                        ways.append(row[t, u - 1] + logs[b, t, u - 1, int(target[b, u - 1])])
                    row[t, u] = torch.logsumexp(torch.stack(ways), 0) if ways else logs.new_zeros(())
            end = int(steps[b]) - 1, int(lengths[b])
            found.append(-row[end] - logs[b, end[0], end[1], blank])
        found = torch.stack(found)
        return found.sum() if reduction == "sum" else found.mean()

    return loss


def losses():
    r = torch.randn
    targets = (torch.rand(3, 5) > 0.5).double()
    labels = torch.tensor([[1., -1, 1, 1], [-1, 1, -1, -1], [1, 1, -1, 1]])
    masks = (torch.rand(3, 2, 4) > 0.4).double()
    same = torch.tensor([1., 0, 0, 1, 0])
    a = r(5, 3)
    pairs = [a, a + r(5, 3) * torch.tensor([0.5, 0.3, 2.0, 1.5, 0.1])[:, None], same]
    words = [r(3, 5, 4, 4), torch.tensor([[1, 2, 3], [3, 3, 0], [2, 0, 0]]), torch.tensor([5, 4, 2]),
             torch.tensor([3, 2, 1])]
    cases = {
        "focal": (focal(2, 0.25), [r(3, 5) * 2, targets]),
        "focal_unweighted": (focal(1.5, -1), [r(3, 5) * 2, targets]),
        "focal_soft": (focal(2, 0.6), [r(3, 5), torch.rand(3, 5)]),
        "dice": (dice(1, False), [torch.rand(3, 2, 4), masks]),
        "dice_squares": (dice(0.5, True), [torch.rand(3, 2, 4), masks]),
        "contrastive": (contrastive(1), pairs),
        "contrastive_margin": (contrastive(2.5), pairs),
        "hinge": (hinge, [r(3, 4) * 1.5, labels]),
        "rnnt_mean": (transducer(0, "mean"), words),
        "rnnt_sum": (transducer(0, "sum"), [r(3, 5, 4, 4) * 2] + words[1:]),
    }
    out = {}
    for name, (loss, inputs) in cases.items():
        inputs = [v.float() for v in inputs]  # as the file has them
        wide = [v.double() for v in inputs]
        wide[0].requires_grad_(True)
        value = loss(*wide)
        value.backward()
        out[name] = {"inputs": [array(v) for v in inputs], "value": float(value.detach()),
                     "gradient": array(wide[0].grad)}
    return out


def modules():
    call = lambda m, *x: m(*x)
    return {"rrelu": record(nn.RReLU().eval(), call, torch.randn(3, 4)),
            "rrelu_bounds": record(nn.RReLU(0.05, 0.45).eval(), call, torch.randn(2, 5))}


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        json.dump({"torch": torch.__version__, "losses": losses(), "modules": modules()}, file)
