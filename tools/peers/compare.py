#!/usr/bin/env python3
"""Runs of models on the CPU by Imprint and by onnxruntime, in alternation.

compare.py IMPRINT PACKAGES FOLDER [--threads N] [--rounds N] [--only TEXT] [--model FILE SHAPES REPEAT]...

IMPRINT is the program; PACKAGES holds onnxruntime-node (see onnxruntime.mjs); FOLDER has the files of networks.py.
Prints the least user time of a run over the rounds, which other programs on the machine disturb least, and the least
median of the wall time. Both are in microseconds.
"""
import argparse
import math
import os
import re
import subprocess

IMAGE = "input=1x3x224x224"
MODELS = [("policy64", "input=64x24", 4000), ("policy256", "input=64x64", 1000), ("squeezenet", IMAGE, 30),
          ("shufflenet", IMAGE, 40), ("mobilenetv2", IMAGE, 30), ("resnet50", IMAGE, 5), ("densenet121", IMAGE, 6),
          ("encoder12", "input=1x64x256", 30)]


def run(command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise SystemExit(" ".join(command) + "\n" + output[-600:])
    return output, usage.ru_utime


def by_imprint(options, file, shapes, repeat):
    command = [options.imprint, "run", file, "--device", "cpu", "--threads", str(options.threads)]
    for shape in shapes.split():
        command += ["--shape", shape] if not shape.endswith("=") else []
    _, before = run(command + ["--repeat", "2"])
    output, after = run(command + ["--repeat", str(repeat + 2)])
    return (after - before) / repeat * 1e6, float(re.search(r"median ([\d.]+)", output).group(1))


def by_peer(options, file, shapes, repeat):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnxruntime.mjs")
    output, _ = run(["node", script, options.packages, str(options.threads), file, shapes, str(repeat)])
    return tuple(map(float, re.search(r"user ([\d.]+) wall ([\d.]+)", output).groups()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("imprint")
    parser.add_argument("packages")
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--model", nargs=3, action="append", default=[])
    options = parser.parse_args()
    rows = [(name, os.path.join(options.folder, name + ".onnx"), shapes, n) for name, shapes, n in MODELS]
    rows += [(os.path.basename(file), file, shapes, int(n)) for file, shapes, n in options.model]
    ratios = []
    print(f"{'model':32} {'user':>10} {'peer':>10} ratio {'wall':>11} {'peer':>10} ratio")
    for name, file, shapes, repeat in rows:
        if options.only not in name:
            continue
        rounds = [by_imprint(options, file, shapes, repeat) + by_peer(options, file, shapes, repeat)
                  for _ in range(options.rounds)]
        user, wall, peer_user, peer_wall = (min(values) for values in zip(*rounds))
        ratios.append(user / peer_user)
        print(f"{name:32} {user:10.1f} {peer_user:10.1f} {user / peer_user:5.2f} "
              f"{wall:11.1f} {peer_wall:10.1f} {wall / peer_wall:5.2f}", flush=True)
    print(f"geometric mean of the ratios of user time: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}")


if __name__ == "__main__":
    main()
