"""Kept for programs that import upstream's replacements of torch functions. torch's own do on xla devices what they should."""

from torch.nn.utils import clip_grad_norm_ as clip_grad_norm_
