"""A network of torchvision's with random weights, always the same ones."""

import torch
import torchvision


def network(name, device, half=False):
    """Takes FP32 [n, 3, h, w] on `device`, gives FP32 [n, 1000] there; with `half` it computes in half precision,
    channels last."""
    # The same sums in every process, whatever the size of the batch.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    made = getattr(torchvision.models, name)(weights=None).eval().to(device)
    if not half:
        return made
    made = made.half().to(memory_format=torch.channels_last)
    return lambda pixels: made(pixels.to(torch.half, memory_format=torch.channels_last)).float()
