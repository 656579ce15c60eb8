#!/usr/bin/env python3
"""Well-known networks in PyTorch on a GPU, as networks.py writes them: models.py [NAME...]

Prints the median time of a run in microseconds: float32 without TF32 and the whole network in float16, eager and
compiled, each in a CUDA graph.
"""
import statistics
import sys

import torch
import torchvision
from torch import nn

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


class Encoder(nn.Module):
    """encoder12 of networks.py: 12 layers, 256 wide, 4 heads, norms first."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 12, nn.LayerNorm(256), enable_nested_tensor=False)

    def forward(self, x):
        return self.layers(x)


NETWORKS = {"resnet50": (torchvision.models.resnet50, (3, 224, 224)),
            "mobilenetv2": (torchvision.models.mobilenet_v2, (3, 224, 224)), "encoder12": (Encoder, (64, 256))}


def fold_norms(model):
    """Convolutions with the batch norms behind them, as exporters fold them."""
    for module in list(model.modules()):
        children = list(module.named_children())
        for (name, conv), (after, norm) in zip(children, children[1:]):
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                setattr(module, name, nn.utils.fusion.fuse_conv_bn_eval(conv, norm))
                setattr(module, after, nn.Identity())
    return model


def time_of(model, x):
    stream = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            model(x)
        times = []
        for _ in range(60):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1000)
    return statistics.median(times[10:])


for name in sys.argv[1:] or NETWORKS:
    make, shape = NETWORKS[name]
    for batch in (1, 32):
        for dtype in (torch.float32, torch.float16):
            layout = torch.channels_last if dtype == torch.float16 and len(shape) == 3 else torch.contiguous_format
            model = fold_norms(make().eval()).to("cuda", dtype, memory_format=layout)
            x = torch.randn(batch, *shape, device="cuda", dtype=dtype).to(memory_format=layout)
            row = [f"eager {time_of(model, x):.0f}"]
            torch._dynamo.reset()
            row.append(f"compiled {time_of(torch.compile(model, dynamic=False), x):.0f}")
            print(f"{name} batch {batch} {str(dtype)[6:]}:", *row, flush=True)
