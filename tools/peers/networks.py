#!/usr/bin/env python3
"""Writes well-known networks with random weights as ONNX files: networks.py FOLDER [NAME...]"""
import array
import math
import os
import random
import struct
import sys

# ---- protobuf ----


def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def number(field, value):
    return varint(field << 3) + varint(value)


def part(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


# ---- the graph ----


class Net:
    def __init__(self, name):
        self.name, self.nodes, self.weights, self.values = name, [], [], 0
        self.random = random.Random(1)
        self.table = array.array("f", (self.random.gauss(0, 1) for _ in range(1 << 16)))

    def tensor(self, shape, values=None, scale=1.0, offset=0.0, ints=False):
        """Without values: pieces of a table of random numbers, times scale, plus offset."""
        name, count = f"w{len(self.weights)}", math.prod(shape)
        if values is not None:
            raw = struct.pack(f"<{count}{'q' if ints else 'f'}", *values)
        else:
            table = array.array("f", (scale * x + offset for x in self.table))
            numbers = array.array("f")
            while len(numbers) < count:
                begin = self.random.randrange(1 << 15)
                numbers.extend(table[begin:begin + count - len(numbers)])
            raw = numbers.tobytes()
        dims = b"".join(number(1, d) for d in shape)
        self.weights.append(part(5, dims + number(2, 7 if ints else 1) + part(8, name) + part(9, raw)))
        return name

    def byte(self, shape, value=None, scale=30.0):
        """uint8 with the value, or random int8."""
        name, count, kind = f"w{len(self.weights)}", math.prod(shape), 3 if value is None else 2
        numbers = [value] if kind == 2 else (round(self.random.gauss(0, scale)) for _ in range(count))
        raw = bytes((n if kind == 2 else max(-128, min(127, n))) & 255 for n in numbers)
        dims = b"".join(number(1, d) for d in shape)
        self.weights.append(part(5, dims + number(2, kind) + part(8, name) + part(9, raw)))
        return name

    def op(self, kind, inputs, outputs=1, **attributes):
        made = [f"v{self.values + i}" for i in range(outputs)]
        self.values += outputs
        node = b"".join(part(1, i) for i in inputs) + b"".join(part(2, o) for o in made) + part(4, kind)
        for key, value in attributes.items():
            if isinstance(value, float):
                form = varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
            elif isinstance(value, int):
                form = number(3, value) + number(20, 2)
            else:
                form = b"".join(number(8, x) for x in value) + number(20, 7)
            node += part(5, part(1, key) + form)
        self.nodes.append(part(1, node))
        return made[0] if outputs == 1 else made

    def save(self, folder, shape, output, output_shape):
        def info(name, dims):
            parts = (part(1, part(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
            return part(1, name) + part(2, part(1, number(1, 1) + part(2, b"".join(parts))))

        graph = b"".join(self.nodes) + part(2, self.name) + b"".join(self.weights)
        graph += part(11, info("input", ["batch"] + shape)) + part(12, info(output, ["batch"] + output_shape))
        with open(os.path.join(folder, self.name + ".onnx"), "wb") as file:
            file.write(number(1, 8) + part(2, "networks.py") + part(7, graph) + part(8, number(2, 17)))

    # ---- layers ----

    def conv(self, x, cin, cout, k, stride=1, pad=None, group=1, act="Relu", gain=None):
        pad = k // 2 if pad is None else pad
        gain = gain or (2.0 if act else 1.0)
        weight = self.tensor([cout, cin // group, k, k], scale=math.sqrt(gain / (cin // group * k * k)))
        y = self.op("Conv", [x, weight, self.tensor([cout], scale=0.05)], kernel_shape=[k, k],
                    strides=[stride] * 2, pads=[pad] * 4, group=group)
        if act == "Relu6":
            return self.op("Clip", [y, self.tensor([], [0.0]), self.tensor([], [6.0])])
        return self.op(act, [y]) if act else y

    def max_pool(self, x, size, stride, pad=0, ceil=0):
        return self.op("MaxPool", [x], kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4,
                       ceil_mode=ceil)

    def dense(self, x, cin, cout, gain=1.0):
        weight = self.tensor([cout, cin], scale=math.sqrt(gain / cin))
        return self.op("Gemm", [x, weight, self.tensor([cout], scale=0.02)], transB=1)

    def norm(self, x, channels):
        values = [self.tensor([channels], scale=0.05, offset=1.0)]
        values += [self.tensor([channels], scale=0.05) for _ in range(2)]
        values += [self.tensor([channels], [1.0 + 0.1 * (i % 5) for i in range(channels)])]
        return self.op("BatchNormalization", [x] + values, epsilon=1e-5)

    def save_classes(self, folder, x, channels=0):
        if channels:
            x = self.dense(self.op("Flatten", [self.op("GlobalAveragePool", [x])], axis=1), channels, 1000)
        self.save(folder, [3, 224, 224], x, [1000])


# ---- networks ----


def resnet50(folder):
    n = Net("resnet50")
    x, cin = n.max_pool(n.conv("input", 3, 64, 7, 2), 3, 2, 1), 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            s = stride if block == 0 else 1
            y = n.conv(n.conv(x, cin, width, 1), width, width, 3, s)
            y = n.conv(y, width, 4 * width, 1, act=None, gain=0.3)
            skip = n.conv(x, cin, 4 * width, 1, s, act=None, gain=0.7) if block == 0 else x
            x, cin = n.op("Relu", [n.op("Add", [y, skip])]), 4 * width
    n.save_classes(folder, x, cin)


def mobilenetv2(folder):
    n = Net("mobilenetv2")
    x, cin = n.conv("input", 3, 32, 3, 2, act="Relu6"), 32
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
            (6, 320, 1, 1))
    for widening, cout, blocks, first in rows:
        for block in range(blocks):
            s, hidden = first if block == 0 else 1, cin * widening
            y = n.conv(x, cin, hidden, 1, act="Relu6") if widening > 1 else x
            y = n.conv(y, hidden, hidden, 3, s, group=hidden, act="Relu6")
            y = n.conv(y, hidden, cout, 1, act=None)
            x, cin = n.op("Add", [x, y]) if s == 1 and cin == cout else y, cout
    n.save_classes(folder, n.conv(x, cin, 1280, 1, act="Relu6"), 1280)


def squeezenet(folder):
    n = Net("squeezenet")
    x = n.max_pool(n.conv("input", 3, 64, 3, 2, pad=0), 3, 2, 0, 1)

    def fire(x, cin, squeezed, each):
        y = n.conv(x, cin, squeezed, 1)
        return n.op("Concat", [n.conv(y, squeezed, each, 1), n.conv(y, squeezed, each, 3)], axis=1)

    x = n.max_pool(fire(fire(x, 64, 16, 64), 128, 16, 64), 3, 2, 0, 1)
    x = n.max_pool(fire(fire(x, 128, 32, 128), 256, 32, 128), 3, 2, 0, 1)
    x = fire(fire(fire(fire(x, 256, 48, 192), 384, 48, 192), 384, 64, 256), 512, 64, 256)
    x = n.op("GlobalAveragePool", [n.conv(x, 512, 1000, 1)])
    n.save_classes(folder, n.op("Flatten", [x], axis=1))


def shufflenet(folder):
    n = Net("shufflenet")
    x, cin, size = n.max_pool(n.conv("input", 3, 24, 3, 2), 3, 2, 1), 24, 56

    def shuffle(x, c, size):
        y = n.op("Reshape", [x, n.tensor([5], [-1, 2, c // 2, size, size], ints=True)])
        y = n.op("Transpose", [y], perm=[0, 2, 1, 3, 4])
        return n.op("Reshape", [y, n.tensor([4], [-1, c, size, size], ints=True)])

    def branch(y, cin, cout, stride):
        y = n.conv(n.conv(y, cin, cout, 1), cout, cout, 3, stride, group=cout, act=None)
        return n.conv(y, cout, cout, 1)

    for c, blocks in ((116, 4), (232, 8), (464, 4)):
        half, size = c // 2, size // 2
        for block in range(blocks):
            if block == 0:
                left = n.conv(n.conv(x, cin, cin, 3, 2, group=cin, act=None), cin, half, 1)
                y = branch(x, cin, half, 2)
            else:
                left, y = n.op("Split", [x, n.tensor([2], [half, half], ints=True)], 2, axis=1)
                y = branch(y, half, half, 1)
            x, cin = shuffle(n.op("Concat", [left, y], axis=1), c, size), c
    n.save_classes(folder, n.conv(x, cin, 1024, 1), 1024)


def densenet121(folder):
    n = Net("densenet121")
    x, c = n.max_pool(n.conv("input", 3, 64, 7, 2), 3, 2, 1), 64
    for stage, layers in enumerate((6, 12, 24, 16)):
        parts = [x]
        for _ in range(layers):
            y = n.op("Concat", parts, axis=1) if len(parts) > 1 else parts[0]
            y = n.conv(n.op("Relu", [n.norm(y, c)]), c, 128, 1)
            parts.append(n.conv(y, 128, 32, 3, act=None))
            c += 32
        x = n.op("Relu", [n.norm(n.op("Concat", parts, axis=1), c)])
        if stage < 3:
            x = n.op("AveragePool", [n.conv(x, c, c // 2, 1, act=None)], kernel_shape=[2, 2], strides=[2, 2])
            c //= 2
    n.save_classes(folder, x, c)


def encoder12(folder):
    """A transformer encoder: 12 layers, 256 wide, 4 heads, 64 steps."""
    n, d, heads, steps = Net("encoder12"), 256, 4, 64
    h = d // heads

    def linear(x, cin, cout, gain=1.0):
        y = n.op("MatMul", [x, n.tensor([cin, cout], scale=math.sqrt(gain / cin))])
        return n.op("Add", [y, n.tensor([cout], scale=0.02)])

    def norm(x):
        weights = [n.tensor([d], scale=0.05, offset=1.0), n.tensor([d], scale=0.05)]
        return n.op("LayerNormalization", [x] + weights, axis=-1, epsilon=1e-5)

    def of_heads(x, perm):
        y = n.op("Reshape", [linear(x, d, d), n.tensor([4], [0, 0, heads, h], ints=True)])
        return n.op("Transpose", [y], perm=perm)

    x = "input"
    for _ in range(12):
        y = norm(x)
        q, k, v = of_heads(y, [0, 2, 1, 3]), of_heads(y, [0, 2, 3, 1]), of_heads(y, [0, 2, 1, 3])
        scores = n.op("Mul", [n.op("MatMul", [q, k]), n.tensor([], [1 / math.sqrt(h)])])
        y = n.op("Transpose", [n.op("MatMul", [n.op("Softmax", [scores], axis=-1), v])], perm=[0, 2, 1, 3])
        y = n.op("Reshape", [y, n.tensor([3], [0, 0, d], ints=True)])
        x = n.op("Add", [x, linear(y, d, d, 0.3)])
        y = linear(norm(x), d, 4 * d, 2.0)
        erf = n.op("Erf", [n.op("Div", [y, n.tensor([], [math.sqrt(2)])])])
        y = n.op("Mul", [n.op("Mul", [y, n.op("Add", [erf, n.tensor([], [1.0])])]), n.tensor([], [0.5])])
        x = n.op("Add", [x, linear(y, 4 * d, d, 0.3)])
    n.save(folder, [steps, d], norm(x), [steps, d])


def policy(name, observations, width, actions):
    def write(folder):
        n = Net(name)
        x = n.op("Tanh", [n.dense("input", observations, width)])
        x = n.op("Tanh", [n.dense(x, width, width)])
        n.save(folder, [observations], n.dense(x, width, actions), [actions])

    return write


def dense30(folder):
    """Eight layers of 1920 x 1920: 118 MB of weights, little work."""
    n, x = Net("dense30"), "input"
    for _ in range(8):
        x = n.op("Relu", [n.dense(x, 1920, 1920, 2.0)])
    n.save(folder, [1920], x, [1920])


def int8_convs(folder):
    """Six quantised convolutions of 64 channels, 3 x 3, on 28 x 28 places (QLinearConv)."""
    n = Net("int8_convs")
    zero, scale = n.byte([], 128), n.tensor([], [0.02])
    x = n.op("QuantizeLinear", ["input", scale, zero])
    for _ in range(6):
        weights = [n.byte([64, 64, 3, 3]), n.tensor([], [0.002]), n.byte([], scale=0.0)]
        x = n.op("QLinearConv", [x, scale, zero] + weights + [scale, zero], kernel_shape=[3, 3], pads=[1] * 4)
    n.save(folder, [64, 28, 28], n.op("DequantizeLinear", [x, scale, zero]), [64, 28, 28])


def int8_dense(folder):
    """Four products of 1024 x 1024 with activations that are quantised at run time (MatMulInteger)."""
    n, x = Net("int8_dense"), "input"
    for _ in range(4):
        numbers, scale, zero = n.op("DynamicQuantizeLinear", [x], 3)
        whole = n.op("Cast", [n.op("MatMulInteger", [numbers, n.byte([1024, 1024]), zero])], to=1)
        x = n.op("Relu", [n.op("Mul", [whole, n.op("Mul", [scale, n.tensor([], [0.001])])])])
    n.save(folder, [1024], x, [1024])


def int8_pairs(folder):
    """The convolutions of int8_convs between QuantizeLinear and DequantizeLinear, as exporters write them."""
    n = Net("int8_pairs")
    zero, scale = n.byte([], 128), n.tensor([], [0.02])

    def rounded(x):
        return n.op("DequantizeLinear", [n.op("QuantizeLinear", [x, scale, zero]), scale, zero])

    x = rounded("input")
    for _ in range(6):
        weight = n.op("DequantizeLinear", [n.byte([64, 64, 3, 3]), n.tensor([64], scale=0.0, offset=0.002)], axis=0)
        x = rounded(n.op("Conv", [x, weight, n.tensor([64], scale=0.05)], kernel_shape=[3, 3], pads=[1] * 4))
    n.save(folder, [64, 28, 28], x, [64, 28, 28])


MADE = (resnet50, mobilenetv2, squeezenet, shufflenet, densenet121, encoder12, dense30, int8_convs, int8_dense,
        int8_pairs)
ALL = {function.__name__: function for function in MADE}
ALL |= {"policy64": policy("policy64", 24, 64, 4), "policy256": policy("policy256", 64, 256, 8)}

if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for each in sys.argv[2:] or ALL:
        ALL[each](sys.argv[1])
