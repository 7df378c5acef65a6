"""Convolutions as networks have them, which `operators.py --convolutions` times: for each a function of input and weight, and their
shapes.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Layer = tuple[Callable[..., torch.Tensor], tuple[int, ...], tuple[int, ...]]


def _layer(x: tuple[int, ...], weight: tuple[int, ...], **how: Any) -> Layer:
    """A plain convolution of an `x` of [batch, channels, sizes...] with a weight of [outputs, inputs / groups, sizes...]."""
    function = (F.conv1d, F.conv2d, F.conv3d)[len(x) - 3]
    return lambda x, w: function(x, w, **how), x, weight


def _transposed(x: tuple[int, ...], weight: tuple[int, ...], **how: Any) -> Layer:
    """A transposed one; weight: [inputs, outputs / groups, sizes...]."""
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[len(x) - 3]
    return lambda x, w: function(x, w, **how), x, weight


def _depthwise(x: tuple[int, ...], size: int, **how: Any) -> Layer:
    return _layer(
        x,
        (x[1], 1) + (size,) * (len(x) - 2),
        padding=size // 2 * how.get("dilation", 1),
        groups=x[1],
        **how,
    )


CONVOLUTIONS: dict[str, Layer] = {
    # Plain ones: of ResNet, VGG, U-Net; of images, of sound.
    "3x3 of 64, 56": _layer((1, 64, 56, 56), (64, 64, 3, 3), padding=1),
    "3x3 of 64, 56, batch 16": _layer((16, 64, 56, 56), (64, 64, 3, 3), padding=1),
    "3x3 of 128 by 2": _layer((4, 128, 56, 56), (128, 128, 3, 3), padding=1, stride=2),
    "3x3 of 512, 7": _layer((4, 512, 7, 7), (512, 512, 3, 3), padding=1),
    "3x3 of 3 to 64, 128": _layer((2, 3, 128, 128), (64, 3, 3, 3), padding=1),
    "3x3 of 1 to 32, 28, batch 64": _layer((64, 1, 28, 28), (32, 1, 3, 3)),
    "5x5 of 16 to 32, 14, batch 64": _layer((64, 16, 14, 14), (32, 16, 5, 5), padding=2),
    "7x7 of 3 by 2, 224": _layer((2, 3, 224, 224), (64, 3, 7, 7), padding=3, stride=2),
    "3x3 of 64 to 3, 64": _layer((4, 64, 64, 64), (3, 64, 3, 3), padding=1),
    "1d, 3 of 128": _layer((8, 128, 512), (128, 128, 3), padding=1),
    "1d, 3 of 80 to 384 (whisper)": _layer((1, 80, 3000), (384, 80, 3), padding=1),
    "1d, 10 by 5 of 1 (wav2vec)": _layer((2, 1, 16000), (512, 1, 10), stride=5),
    # 1x1.
    "1x1 of 64 to 256, 56": _layer((1, 64, 56, 56), (256, 64, 1, 1)),
    "1x1 of 256 to 64, 56, batch 16": _layer((16, 256, 56, 56), (64, 256, 1, 1)),
    "1x1 of 1024 to 256, 14": _layer((1, 1024, 14, 14), (256, 1024, 1, 1)),
    "1x1 of 512 to 2048, 7, batch 16": _layer((16, 512, 7, 7), (2048, 512, 1, 1)),
    "1x1 of 256 to 512 by 2, batch 4": _layer((4, 256, 56, 56), (512, 256, 1, 1), stride=2),
    "1x1 of 32 to 16, 112": _layer((4, 32, 112, 112), (16, 32, 1, 1)),
    "1x1 of 96 to 24, 56": _layer((4, 96, 56, 56), (24, 96, 1, 1)),
    "1x1 of 64 to 1, 128": _layer((4, 64, 128, 128), (1, 64, 1, 1)),
    "1x1 of one pixel": _layer((16, 512, 1, 1), (32, 512, 1, 1)),
    # By depth.
    "depth, 3x3 of 32, 112": _depthwise((4, 32, 112, 112), 3),
    "depth, 3x3 of 96 by 2, 112": _depthwise((4, 96, 112, 112), 3, stride=2),
    "depth, 3x3 of 384, 14": _depthwise((1, 384, 14, 14), 3),
    "depth, 3x3 of 576, 14, batch 16": _depthwise((16, 576, 14, 14), 3),
    "depth, 5x5 of 240, 28": _depthwise((4, 240, 28, 28), 5),
    "depth, 5x5 of 672 by 2, 14": _depthwise((4, 672, 14, 14), 5, stride=2),
    "depth, 7x7 of 96, 56": _depthwise((4, 96, 56, 56), 7),
    "depth, 7x7 of 768, 7": _depthwise((4, 768, 7, 7), 7),
    "depth, 3x3 of 64 dilated by 2": _depthwise((4, 64, 56, 56), 3, dilation=2),
    "depth, two of each": _layer((4, 64, 56, 56), (128, 1, 3, 3), padding=1, groups=64),
    "depth, 3x3x3 of 32": _depthwise((2, 32, 16, 28, 28), 3),
    # In groups, dilated.
    "grouped, 32 of 128 (ResNeXt)": _layer((4, 128, 56, 56), (128, 4, 3, 3), padding=1, groups=32),
    "grouped, 32 of 1024, 14": _layer((4, 1024, 14, 14), (1024, 32, 3, 3), padding=1, groups=32),
    "grouped, 2 of 96, 27": _layer((4, 96, 27, 27), (256, 48, 5, 5), padding=2, groups=2),
    "grouped 1x1, 3 of 240": _layer((4, 240, 28, 28), (60, 80, 1, 1), groups=3),
    "grouped, 1d, 16 of 768 (wav2vec)": _layer(
        (1, 768, 150), (768, 48, 128), padding=64, groups=16
    ),
    "dilated by 2, 3x3 of 256": _layer((2, 256, 28, 28), (256, 256, 3, 3), padding=2, dilation=2),
    "dilated by 12, 3x3 of 512": _layer(
        (1, 512, 28, 28), (256, 512, 3, 3), padding=12, dilation=12
    ),
    "dilated by 8, 1d of 64 (wavenet)": _layer((4, 64, 2000), (128, 64, 2), dilation=8),
    # Transposed: DCGAN, U-Net, decoders.
    "transposed, 100 to 512 from a point": _transposed((16, 100, 1, 1), (100, 512, 4, 4)),
    "transposed, 4x4 by 2, 512 to 256, 4": _transposed(
        (16, 512, 4, 4), (512, 256, 4, 4), stride=2, padding=1
    ),
    "transposed, 4x4 by 2, 128 to 64, 16": _transposed(
        (16, 128, 16, 16), (128, 64, 4, 4), stride=2, padding=1
    ),
    "transposed, 4x4 by 2, 64 to 3, 32": _transposed(
        (16, 64, 32, 32), (64, 3, 4, 4), stride=2, padding=1
    ),
    "transposed, 2x2 by 2, 128 to 64, 64": _transposed((2, 128, 64, 64), (128, 64, 2, 2), stride=2),
    "transposed, 2x2 by 2, 1024 to 512, 14": _transposed(
        (1, 1024, 14, 14), (1024, 512, 2, 2), stride=2
    ),
    "transposed, 3x3 by 2, 64 to 32, 28": _transposed(
        (8, 64, 28, 28), (64, 32, 3, 3), stride=2, padding=1, output_padding=1
    ),
    "transposed, 3x3 by 1, 64, 28": _transposed((8, 64, 28, 28), (64, 64, 3, 3), padding=1),
    "transposed, 32x32 by 16, 21": _transposed(
        (1, 21, 14, 14), (21, 21, 32, 32), stride=16, padding=8
    ),
    "transposed by depth, 4x4 by 2, 21": _transposed(
        (4, 21, 32, 32), (21, 1, 4, 4), stride=2, padding=1, groups=21
    ),
    "transposed, 1d, 16 by 8, 256 to 128": _transposed(
        (4, 256, 100), (256, 128, 16), stride=8, padding=4
    ),
    "transposed, 2x2x2 by 2, 64 to 32": _transposed(
        (1, 64, 8, 16, 16), (64, 32, 2, 2, 2), stride=2
    ),
    "transposed, 4x4x4 by 2, 64 to 32": _transposed(
        (1, 64, 8, 16, 16), (64, 32, 4, 4, 4), stride=2, padding=1
    ),
    # Of volumes and films.
    "3x3x3 of 3 to 64, film": _layer((1, 3, 8, 56, 56), (64, 3, 3, 3, 3), padding=1),
    "3x3x3 of 64, film": _layer((1, 64, 8, 28, 28), (64, 64, 3, 3, 3), padding=1),
    "3x3x3 of 1 to 16, volume": _layer((1, 1, 32, 32, 32), (16, 1, 3, 3, 3), padding=1),
    "3x3x3 of 16 to 32 by 2": _layer((2, 16, 32, 32, 32), (32, 16, 3, 3, 3), padding=1, stride=2),
    "1x3x3 of 64 (R(2+1)D)": _layer((1, 64, 8, 28, 28), (144, 64, 1, 3, 3), padding=(0, 1, 1)),
    "3x1x1 of 144 (R(2+1)D)": _layer((1, 144, 8, 28, 28), (64, 144, 3, 1, 1), padding=(1, 0, 0)),
    "1x1x1 of 64 to 256": _layer((1, 64, 8, 28, 28), (256, 64, 1, 1, 1)),
    "3x3x3 of single voxels": _layer((64, 8, 3, 3, 3), (16, 8, 3, 3, 3)),
}
