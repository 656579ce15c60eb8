#!/usr/bin/env python3
"""MNIST in PyTorch on a GPU, with the networks, rates and augmentation of samples/11-networks:
mnist.py FOLDER mlp|cnn SEED,SEED... eager|compiled"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

folder, net, seeds, how = sys.argv[1], sys.argv[2], [int(s) for s in sys.argv[3].split(",")], sys.argv[4]


def idx(name, head):
    data = torch.frombuffer(bytearray(open(f"{folder}/{name}", "rb").read()), dtype=torch.uint8)
    return data[head:]


def split(kind):
    x = idx(f"{kind}-images-idx3-ubyte", 16).view(-1, 1, 28, 28).float().div(255).cuda()
    return x, idx(f"{kind}-labels-idx1-ubyte", 8).long().cuda()


x, label = split("train")
checks, check_labels = split("t10k")
batch, rate = (128, 4e-3) if net == "mlp" else (64, 0.01)
batches, epochs = len(x) // batch + (len(x) % batch > 0), 3


def make(seed):
    torch.manual_seed(seed)
    if net == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                             nn.Linear(512, 10)).cuda()
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Dropout(0.3), nn.Linear(3136, 10)).cuda()


def moved(pictures):
    if net == "mlp":
        return pictures
    count = len(pictures)
    padded = F.pad(pictures, (2, 2, 2, 2))
    pixels = torch.arange(28, device="cuda")
    rows = torch.randint(0, 5, (count, 1, 1), device="cuda") + pixels.view(1, 28, 1)
    columns = torch.randint(0, 5, (count, 1, 1), device="cuda") + pixels.view(1, 1, 28)
    return padded[torch.arange(count, device="cuda").view(-1, 1, 1), 0, rows, columns].unsqueeze(1)


def loss_of(model, pictures, target):
    return F.cross_entropy(model(moved(pictures)), target)


def train(seed, step_loss):
    model = make(seed)
    optimiser = (torch.optim.Adam if net == "mlp" else torch.optim.AdamW)(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=epochs * batches + 1,
                                                   cycle_momentum=False)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(epochs):
        order = torch.randperm(len(x), device="cuda")
        for i in range(batches):
            part = order[i * batch:(i + 1) * batch]
            loss = step_loss(model, x[part], label[part])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    model.eval()
    with torch.no_grad():
        right = sum((model(checks[i:i + 250]).argmax(1) == check_labels[i:i + 250]).sum() for i in
                    range(0, len(checks), 250))
    return float(right) / len(checks), seconds


step_loss = torch.compile(loss_of, dynamic=False) if how == "compiled" else loss_of
# Compiles, and warms the device up, before anything is timed.
warm = make(0)
start = time.perf_counter()
for size in (batch, batch, len(x) - (batches - 1) * batch, batch):
    step_loss(warm, x[:size], label[:size]).backward()
torch.cuda.synchronize()
print(f"{net} {how}: warm-up {time.perf_counter() - start:.1f} s", flush=True)
for seed in seeds:
    right, seconds = train(seed, step_loss)
    print(f"{net} {how} seed {seed}: {100 * right:.2f} % in {seconds:.2f} s", flush=True)
