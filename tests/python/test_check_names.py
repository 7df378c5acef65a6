"""scripts/check_names.py: names that two sources of a folder both define are found, and others are none."""

import subprocess
import sys

import pytest
from conftest import ROOT


def found(folder, *sources):
    """What the script prints of a folder with these sources in the unnamed namespace of `room`."""
    for i, source in enumerate(sources):
        text = f"namespace room {{\nnamespace {{\n{source}\n}}  // namespace\n}}\n"
        (folder / f"{i}.cc").write_text(text)
    command = [sys.executable, str(ROOT / "scripts" / "check_names.py"), str(folder)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == (1 if result.stdout else 0), result.stderr
    return result.stdout


COLLISIONS = {
    "Length": (
        "int64_t Length(const Shape& shape, int n = 1) { return 1; }",
        "int64_t Length(const Shape& s, int count) {\n  if (count) { return 2; }\n  return 3;\n}",
    ),
    "Area": (
        "template <typename T, typename = A<B<T>>> T Area(T x) { return x; }",
        "template <class T>\n  requires(C<T>) T Area(T y) { return y; }",
    ),
    "Count": (
        "bool Count(hlo::Shape& shape) { return true; }",
        "bool Count(Shape& shape) { return false; }",
    ),
    "kLimit": ("constexpr int kLimit = Some(3);", "const std::map<int, int> kLimit{{1, 2}};"),
    "entries": ("std::vector<int> entries;", "int entries[4] = {};"),
    "Row": ("struct Row {\n  int x;\n};", "class Row final : public Base<int> {};"),
    "kRed": ("enum Color { kBlue = 1, kRed };", "constexpr int kRed = 2;"),
    "Value": ("using hlo::Value;", "using Value = llvm::Value*;"),
    "py": ("namespace py = pybind11;", "namespace py = python;"),
    "Sum": ("struct Sum {};", "int Sum(int x) { return x; }"),
}


@pytest.mark.parametrize("name", COLLISIONS)
def test_finds_what_both_define(tmp_path, name):
    printed = found(tmp_path, *COLLISIONS[name])
    assert printed.count("\n") == 1 and f"room::{name}" in printed
    assert "0.cc" in printed and "1.cc" in printed


def test_other_names_are_none(tmp_path):
    first = """
// int Commented() { return 1; }
#define MACRO(x) \\
  int Defined##x() { return 1; }
using hlo::Value;
class Declared;
int Overloaded(int x) { return x; }
const char* text = "int Quoted() { return 1; }";
struct Local { int Method() { return 1; } enum { kInside }; };
enum class Scoped { kOne };
int Own() { struct Row {}; constexpr int kInside = 1; return kInside; }
TORCH_LIBRARY_IMPL(aten, XLA, m) { m.impl("x", &Own); }
First::First() : a_{1}, b_(2) {}
bool operator==(const First& a, const First& b) { return true; }
template <> struct Traits<First> {};
"""
    second = """
int Commented() { return 1; }
int Defined() { return 1; }
using hlo::Value;
class Declared { int x; };
int Overloaded(double x) { return 1; }
int Quoted() { return 2; }
struct Other { int Method() { return 1; } };
enum class Another { kOne };
int OwnToo() { struct Row {}; constexpr int kInside = 1; return kInside; }
TORCH_LIBRARY_IMPL(aten, XLA, m) { m.impl("y", &OwnToo); }
Second::Second() : a_{1}, b_(2) {}
bool operator==(const Second& a, const Second& b) { return true; }
template <> struct Traits<Second> {};
"""
    assert found(tmp_path, first, second) == ""


def test_other_namespaces_are_none(tmp_path):
    function = "int F() { return 1; }"
    assert found(tmp_path, function, f"namespace inner {{ {function} }}") == ""
