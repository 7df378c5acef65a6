"""Programs in HLO's textual form, which people and vendors' tests search."""

import re

import pytest
import torch
import torch.nn.functional as F

import torch_xla.core.xla_builder as xb
from torch_xla import _XLAC


def text_of(function, *sizes, dtype=torch.float32):
    tensors = [torch.randn(*size).to(dtype).to("xla") for size in sizes]
    return _XLAC._get_xla_tensors_hlo([function(*tensors)])


def test_a_program_has_a_header_an_entry_and_a_root():
    text = text_of(lambda a, b: a @ b, (3, 5), (5, 4))
    lines = text.splitlines()
    assert lines[0] == (
        "HloModule IrToHlo, entry_computation_layout={(f32[5,4]{1,0}, f32[3,5]{1,0})->(f32[3,4]{1,0})}"
    )
    assert re.fullmatch(
        r"ENTRY %\S+ \(p0\.\d+: f32\[5,4\], p1\.\d+: f32\[3,5\]\) -> \(f32\[3,4\]\) \{", lines[2]
    )
    assert re.search(
        r"  %dot\.\d+ = f32\[3,4\]\{1,0\} dot\(f32\[3,5\]\{1,0\} %p1\.\d+, f32\[5,4\]\{1,0\} %p0\.\d+\), "
        r"lhs_contracting_dims=\{1\}, rhs_contracting_dims=\{0\}",
        text,
    )
    assert re.search(r"  ROOT %tuple\.\d+ = \(f32\[3,4\]\{1,0\}\) tuple\(", text)
    assert lines[-1] == "}"


LINES = {
    "elements": (lambda x: x.exp(), r" exponential\(f32\[2,3,8,8\]\{3,2,1,0\} %"),
    "reduction": (
        lambda x: x.sum(1),
        r" reduce\(.*, f32\[\] %constant\.\d+\), dimensions=\{1\}, to_apply=%",
    ),
    "transposition": (
        lambda x: x.permute(0, 2, 1, 3).contiguous(),
        r" transpose\(.*\), dimensions=\{0,2,1,3\}",
    ),
    "slice": (lambda x: x[:, 1:3], r" slice\(.*\), slice=\{\[0:2\], \[1:3\], \[0:8\], \[0:8\]\}"),
    "padding": (lambda x: F.pad(x, (1, 2)), r" pad\(.*\), padding=0_0x0_0x0_0x1_2"),
    "convolution": (
        lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3, device="xla"), stride=2, padding=1),
        r" convolution\(.*\), window=\{size=3x3 stride=2x2 pad=1_1x1_1\}, dim_labels=bf01_oi01->bf01",
    ),
    "concatenation": (lambda x: torch.cat([x, x], 2), r" concatenate\(.*\), dimensions=\{2\}"),
    "comparison": (lambda x: x > 0.5, r" compare\(.*\), direction=GT"),
    "sort": (lambda x: x.sort(3)[0], r" sort\(.*\), dimensions=\{3\}, to_apply=%"),
    "conversion": (
        lambda x: x.to(torch.bfloat16),
        r"bf16\[2,3,8,8\]\{3,2,1,0\} convert\(f32\[2,3,8,8\]\{3,2,1,0\} %",
    ),
    "iota": (lambda x: x.argmax(1), r" iota\(\), iota_dimension=1"),
}


@pytest.mark.parametrize("name", LINES)
def test_lines(name):
    function, pattern = LINES[name]
    text = text_of(function, (2, 3, 8, 8))
    assert re.search(pattern, text), text


def test_loops_and_branches_take_tuples():
    def build(x):
        limit = xb.Op.scalar(x.builder(), 3, dtype=xb.Type.S32)
        zero = xb.Op.zero(x.builder(), dtype=xb.Type.S32)
        loop = xb.Op.mkwhile(
            (zero, x),
            lambda i, v: i < xb.Op.scalar(i.builder(), 3, dtype=xb.Type.S32),
            lambda i, v: (i + xb.Op.one(i.builder(), dtype=xb.Type.S32), v.sin()),
        )
        count, value = loop.get_tuple_element(0), loop.get_tuple_element(1)
        return (count > limit).mkconditional((value,), lambda v: v, lambda v: v.cos())

    shape = xb.mkshape(xb.Type.F32, (2,))
    text = xb.get_computation_hlo(xb.create_computation("c", build, [shape]))
    loop = re.search(
        r"%while\.\d+ = \(s32\[\], f32\[2\]\{0\}\) while\(\(s32\[\], f32\[2\]\{0\}\) %tuple\.\d+\), "
        r"condition=(%\S+), body=(%\S+)",
        text,
    )
    for name, result in zip(loop.groups(), (r"pred\[\]", r"\(s32\[\], f32\[2\]\)"), strict=True):
        assert re.search(
            rf"\n{re.escape(name)} \(arg_tuple\.\d+: \(s32\[\], f32\[2\]\)\) -> {result} \{{\n",
            text,
        )
    assert re.search(
        r" conditional\(pred\[\] %\S+, (\(f32\[2\]\{0\}, f32\[2\]\{0\}\) %\S+), \1\), "
        r"true_computation=%\S+, false_computation=%\S+",
        text,
    )
    # Every operand is defined before it is used, and every computation has one root.
    assert text.count("ROOT ") == len(re.findall(r"^(?:ENTRY )?%\S+ \(.*\{$", text, re.MULTILINE))
    for block in re.findall(r"\{\n(.*?)\n\}", text, re.DOTALL):
        known = set()
        for line in block.splitlines():
            name, rest = re.match(r"  (?:ROOT )?(%\S+) = (.*)", line).groups()
            operands = set(re.findall(r"%[\w.-]+", re.sub(r"\), \w+=.*", "", rest)))
            assert operands <= known, line
            known.add(name)


def test_constants_have_their_values():
    def build(x):
        values = xb.Op.constant(x.builder(), torch.tensor([[1.5, -2.0]]))
        many = xb.Op.constant(x.builder(), torch.arange(20.0))
        flag = xb.Op.constant(x.builder(), torch.tensor(True))
        return xb.Op.tuple((values, many, flag, x))

    shape = xb.mkshape(xb.Type.F32, ())
    text = xb.get_computation_hlo(xb.create_computation("c", build, [shape]))
    assert "f32[1,2]{1,0} constant({{1.5, -2}})" in text
    assert "constant({...})" in text and "pred[] constant(true)" in text
