#!/usr/bin/env python3
"""The character GPT of samples/11-networks in PyTorch, from Imprint's own first weights:
gpt.py TEXT                                             writes a text of the sample's grammar
gpt.py TEXT FOLDER SEED,SEED... eager|compiled [STEPS]  trains on the text, 2000 steps by default

FOLDER/SEED/last.safetensors is of
imprint train char-gpt --data TEXT --steps 0 --seed SEED --folder FOLDER/SEED
"""
import json
import math
import random
import sys
import time

LENGTH, BATCH, STRIDE, HEADS, LAYERS, EXTENT, DROPOUT = 128, 16, 256, 8, 4, 256, 0.1


def write_sentences(path, count=20_000):
    draw = random.Random(1).choice
    sizes, animals = ["small", "large", "quiet", "young"], ["fox", "hen", "goat", "crow"]
    deeds, things = ["sees", "follows", "carries", "hides"], ["lamp", "apple", "rope", "stone"]
    places = ["by the river", "under the bridge", "in the barn"]
    with open(path, "w", encoding="ascii") as file:
        for _ in range(count):
            file.write(f"the {draw(sizes)} {draw(animals)} {draw(deeds)} a {draw(things)} {draw(places)}.\n")


if len(sys.argv) == 2:
    write_sentences(sys.argv[1])
    sys.exit()
if len(sys.argv) < 5 or sys.argv[4] not in ("eager", "compiled"):
    sys.exit(__doc__)

import torch
from torch import nn
from torch.nn import functional as F

text_path, folder, seeds, how = sys.argv[1], sys.argv[2], sys.argv[3].split(","), sys.argv[4]
steps = int(sys.argv[5]) if len(sys.argv) > 5 else 2000
device = "cuda" if torch.cuda.is_available() else "cpu"


def read_safetensors(path):
    """float32 tensors by name, whose names begin with "model."."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    found = {}
    for name, entry in header.items():
        if not name.startswith("model."):
            continue
        if entry["dtype"] != "F32":
            sys.exit(f"{path}: {name}: found {entry['dtype']}, expected F32.")
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(data, dtype=torch.float32, count=(end - begin) // 4, offset=begin)
        found[name.removeprefix("model.")] = values.clone().view(entry["shape"])
    return found


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.empty(3 * EXTENT, EXTENT))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * EXTENT))
        self.out_proj = nn.Linear(EXTENT, EXTENT)

    def forward(self, x, cos, sin):
        count, length, _ = x.shape
        parts = F.linear(x, self.in_proj_weight, self.in_proj_bias).view(count, length, 3, HEADS, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)

        def turned(y):
            a, b = y.chunk(2, -1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

        y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True,
                                           dropout_p=DROPOUT if self.training else 0.0)
        return self.out_proj(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = Attention()
        self.linear1, self.linear2 = nn.Linear(EXTENT, 4 * EXTENT), nn.Linear(4 * EXTENT, EXTENT)
        self.norm1, self.norm2 = nn.LayerNorm(EXTENT), nn.LayerNorm(EXTENT)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x, cos, sin):
        x = x + self.dropout(self.self_attn(self.norm1(x), cos, sin))
        hidden = self.dropout(F.gelu(self.linear1(self.norm2(x))))
        return x + self.dropout(self.linear2(hidden))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.norm = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.LayerNorm(EXTENT)


class Gpt(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letters, self.net = nn.Embedding(letters, EXTENT), Net()
        half = EXTENT // HEADS // 2
        rates = torch.exp(torch.arange(half) * (-math.log(10000) / half))
        angles = torch.arange(LENGTH).unsqueeze(1) * rates
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x):
        y = self.letters(x)
        for layer in self.net.layers:
            y = layer(y, self.cos, self.sin)
        return F.linear(self.net.norm(y), self.letters.weight)


text = open(text_path, "rb").read()
place = {letter: i for i, letter in enumerate(sorted(set(text)))}
tokens = torch.tensor([place[letter] for letter in text], device=device)
learned = len(text) * 9 // 10


def windows(part):
    """Every STRIDE-th window, and the same one letter later."""
    starts = torch.arange(0, len(part) - LENGTH, STRIDE, device=device).unsqueeze(1)
    at = starts + torch.arange(LENGTH, device=device)
    return part[at], part[at + 1]


x, y = windows(tokens[:learned])
checks, check_targets = windows(tokens[learned:])


def loss_of(model, letters, targets):
    return F.cross_entropy(model(letters).flatten(0, 1), targets.flatten())


def validate(model):
    model.eval()
    with torch.no_grad():
        total = sum(loss_of(model, checks[i:i + BATCH], check_targets[i:i + BATCH]) * len(checks[i:i + BATCH])
                    for i in range(0, len(checks), BATCH))
    model.train()
    return float(total) / len(checks)


def rate(step):
    """As a share of 1e-3: a cosine over 2000 steps down to 1e-5, times a warm-up of 100."""
    fallen = 0.01 + 0.99 * (0.5 + 0.5 * math.cos(math.pi * min(step / 2000, 1)))
    return fallen * min(step / 100, 1)


def make(seed):
    model = Gpt(len(place))
    model.load_state_dict(read_safetensors(f"{folder}/{seed}/last.safetensors"))
    return model.to(device)


def train(seed, step_loss, count):
    torch.manual_seed(int(seed))
    model = make(seed)
    first = validate(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    wait()
    start, done = time.perf_counter(), 0
    while done < count:
        order = torch.randperm(len(x), device=device)
        for i in range(0, len(x), BATCH):
            part = order[i:i + BATCH]
            loss = step_loss(model, x[part], y[part])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimiser.step()
            schedule.step()
            done += 1
            if done == count:
                break
    wait()
    seconds = time.perf_counter() - start
    return first, validate(model), seconds


def wait():
    if device == "cuda":
        torch.cuda.synchronize()


print(f"torch {torch.__version__} on {torch.cuda.get_device_name() if device == 'cuda' else 'CPU'}: "
      f"{len(place)} letters, {len(x)} windows, {len(checks)} to check", flush=True)
step_loss = torch.compile(loss_of, dynamic=False) if how == "compiled" else loss_of
# Compiles, and warms the device up, before anything is timed.
start = time.perf_counter()
warm = make(seeds[0])
for size in (BATCH, BATCH, len(x) % BATCH or BATCH, BATCH):
    step_loss(warm, x[:size], y[:size]).backward()
wait()
print(f"gpt {how}: warm-up {time.perf_counter() - start:.1f} s", flush=True)
for seed in seeds:
    first, last, seconds = train(seed, step_loss, steps)
    print(f"gpt {how} seed {seed}: validation loss {first:.4f} before, {last:.4f} after {steps} steps in "
          f"{seconds:.2f} s, {1e3 * seconds / max(steps, 1):.2f} ms per step", flush=True)
