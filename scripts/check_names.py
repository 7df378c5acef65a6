"""Names that two sources of a folder both define, which fail where the two become one compilation (cmake/batches.cmake).

Which sources do follows from their sizes when a build is configured. So what concerns each source alone has names that no
other one of its folder has, in an unnamed namespace, too: functions of equal parameters, classes, constants, names for
other names.

    python scripts/check_names.py [FOLDER]    all folders of src/, and of tests/ those that are compiled so, unless one is
                                              given; status 1 where there are such names
"""

import collections
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]
SOURCES = ROOT / "src"
TESTS = [ROOT / "tests" / name for name in ("aten", "cpu", "fuzz", "hlo", "passes", "process")]
# Never in a batch: they have compile options of their own, or torch's macros, or are tests of the runtime.
ALONE = (
    "src/aten/autocast.cc",
    *("tests/cpu/collective_", "tests/cpu/library_", "tests/cpu/memory_", "tests/cpu/thread_pool_"),
)

# Comments, literals and preprocessor lines, which say nothing here, before the tokens that do.
TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/
      | R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"
      | (?P<string>"(?:\\.|[^"\\\n])*") | '(?:\\.|[^'\\\n])+'
      | ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*
      | (?P<token>[A-Za-z_]\w* | \d(?:'\d|[\w.])* | :: | && | <=> | [=!<>]= | \S)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
CLOSING = {"(": ")", "{": "}", "[": "]"}
CLASSES = ("class", "struct", "union", "enum")
Definition = tuple[
    str, str
]  # a name with its namespaces, and what it is: a function's parameters, a class


def tokens(text: str) -> list[str]:
    """A string is a token `""`."""
    found = []
    for match in TOKEN.finditer(text):
        if match["token"]:
            found.append(match["token"])
        elif match["string"]:
            found.append('""')
    return found


def end_of_group(words: list[str], start: int) -> int:
    """Behind the bracket that closes the one at `start`."""
    closing = []
    for i in range(start, len(words)):
        if words[i] in CLOSING:
            closing.append(CLOSING[words[i]])
        elif closing and words[i] == closing[-1]:
            closing.pop()
            if not closing:
                return i + 1
    return len(words)


def end_of_angles(words: list[str], start: int) -> int:
    """Behind the `>` that closes the `<` at `start`."""
    depth, i = 0, start
    while i < len(words):
        if words[i] in CLOSING:
            i = end_of_group(words, i)
            continue
        depth += (words[i] == "<") - (words[i] == ">")
        i += 1
        if depth == 0:
            break
    return i


def definitions(words: list[str], path: tuple[str, ...] = ()) -> Iterator[Definition]:
    """What a source defines in its namespaces. Members, specializations and what a macro makes are left out."""
    i = 0
    while i < len(words):
        start = i
        while i < len(words) and words[i] != ";":
            if words[i] == "{" and not initializes_member(words[start:i]):
                break
            i = end_of_group(words, i) if words[i] in CLOSING else i + 1
        head = words[start:i]
        if i == len(words) or words[i] == ";":
            i += 1
            yield from named(head, path, has_body=False)
            continue
        body_end = end_of_group(words, i)
        if head[:1] == ["catch"]:  # of a function that is one try block
            i = body_end
            continue
        if (
            head[:1] == ["namespace"]
            or head == ["inline", "namespace"]
            or (head[:1] == ["extern"] and '""' in head)
        ):
            inner = tuple(w for w in head[1:] if w != "::") if head[0] == "namespace" else ()
            yield from definitions(words[i + 1 : body_end - 1], path + inner)
            i = body_end
            continue
        yield from named(head, path, has_body=True)
        if head[:1] == ["enum"] and not set(head) & {"class", "struct"}:
            yield from enumerators(words[i + 1 : body_end - 1], path)
        i = body_end
        # A class or a value ends with its semicolon, a function with its body.
        if is_class(head) or not is_function(head):
            while i < len(words) and words[i] != ";":
                i = end_of_group(words, i) if words[i] in CLOSING else i + 1
            i += 1


def initializes_member(head: list[str]) -> bool:
    """Whether a brace behind `head` is one of `Class::Class() : member_{1} {}`, and not the body."""
    return ")" in head and ":" in head[head.index(")") :] and bool(re.match(r"\w|>", head[-1]))


def enumerators(body: list[str], path: tuple[str, ...]) -> Iterator[Definition]:
    is_next, i = True, 0
    while i < len(body):
        if is_next:
            yield "::".join((*path, body[i])), "a value"
        is_next = body[i] == ","
        i = end_of_group(body, i) if body[i] in CLOSING else i + 1


def without_template(head: list[str]) -> list[str]:
    while head[:1] == ["template"]:
        head = head[end_of_angles(head, 1) :]
        if head[:1] == ["requires"]:
            head = head[end_of_group(head, 1) :]
    while head[:1] in (["["], ["__attribute__"]):
        head = head[end_of_group(head, head.index("(") if head[0] == "__attribute__" else 0) :]
    return head


def is_class(head: list[str]) -> bool:
    return any(word in CLASSES for word in without_template(head)[:1])


def parameters_at(head: list[str]) -> int:
    """Where a function's parameters begin; -1 for what is none."""
    i = 0
    while i < len(head):
        if head[i] == "=" and (i == 0 or head[i - 1] != "operator"):
            return -1
        if head[i] == "<" and i > 0 and head[i - 1] != "operator":
            i = end_of_angles(head, i)
        elif (
            head[i] == "("
            and i > 0
            and head[i - 1] not in ("decltype", "alignas", "noexcept", "operator")
        ):
            return i
        else:
            i = end_of_group(head, i) if head[i] in CLOSING else i + 1
    return -1


def is_function(head: list[str]) -> bool:
    return parameters_at(without_template(head)) > 0


def types_of(parameters: list[str]) -> str:
    """The parameters' types: without their names and defaults."""
    types, start, i = [], 0, 0
    while i <= len(parameters):
        if i < len(parameters) and parameters[i] != ",":
            if parameters[i] in CLOSING:
                i = end_of_group(parameters, i)
            else:
                i = end_of_angles(parameters, i) if parameters[i] == "<" else i + 1
            continue
        one = parameters[start:i]
        if "=" in one:
            one = one[: one.index("=")]
        if (
            len(one) > 1
            and re.fullmatch(r"\w+", one[-1])
            and one[-2] not in ("::", "const", "unsigned")
        ):
            one = one[:-1]
        # With a namespace or without, it is one type.
        types.append(re.sub(r"\w+ :: ", "", " ".join(one)))
        start = i = i + 1
    return ", ".join(types)


def named(head: list[str], path: tuple[str, ...], has_body: bool) -> Iterator[Definition]:
    """What one declaration defines, if anything."""
    is_template = head[:1] == ["template"]
    head = without_template(head)
    if (
        not head
        or head[0] in ("friend", "static_assert", "extern", "template")
        or head[:2] == ["using", "namespace"]
    ):
        return
    where = "::".join((*path, ""))
    if head[0] in ("using", "namespace"):
        target = "".join(head[head.index("=") + 1 :] if "=" in head else head[1:])
        yield where + (head[1] if "=" in head else head[-1]), f"a name for {target}"
    elif is_class(head):
        words = [w for w in head[1:] if w not in CLASSES and w != "alignas"]
        name = next((w for w in words if re.match(r"[A-Za-z_]", w)), "")
        if has_body and name and words[words.index(name) + 1 :][:1] not in (["<"], ["::"]):
            yield where + name, "a class"
    elif (at := parameters_at(head)) > 0:
        name = head[at - 1]
        is_member = at > 1 and head[at - 2] == "::"
        if (
            name.isupper()
            or is_member
            or not re.match(r"[A-Za-z_]", name)
            or "operator" in head[:at]
        ):
            return
        if head[at - 1] == ">" or name in ("if", "while", "for", "switch"):
            return
        group = head[at + 1 : end_of_group(head, at) - 1]
        if is_template:
            group = ["a", "template", "of", *group]
        yield where + name, f"a function of ({types_of(group)})"
    elif len(head) > 1:
        stop = next((i for i, w in enumerate(head) if w in ("=", "[")), len(head))
        name = head[stop - 1]
        if (
            re.match(r"[A-Za-z_]\w*$", name)
            and (stop < 2 or head[stop - 2] != "::")
            and not name.isupper()
        ):
            yield where + name, "a value"


def is_alone(file: pathlib.Path) -> bool:
    return file.absolute().as_posix().removeprefix(f"{ROOT}/").startswith(ALONE)


def collisions(folder: pathlib.Path) -> list[str]:
    """Each name that two sources of a folder both define, with the sources."""
    sources = collections.defaultdict(lambda: collections.defaultdict(list))
    for file in sorted(folder.glob("*.cc")):
        if is_alone(file):
            continue
        for name, what in dict.fromkeys(definitions(tokens(file.read_text()))):
            sources[name][what].append(file.name)
    found = []
    for name, kinds in sorted(sources.items()):
        # Functions may be overloaded, and a name for something may be said twice.
        for what, files in kinds.items():
            if len(files) > 1 and not what.startswith("a name for"):
                found.append(f"{name}, {what}, is defined by {', '.join(files)}")
        others = [what for what in kinds if not what.startswith("a function")]
        if (
            len(kinds) > 1
            and others
            and len({file for files in kinds.values() for file in files}) > 1
        ):
            found.append(
                f"{name} is "
                + "; ".join(f"{what} in {', '.join(files)}" for what, files in kinds.items())
            )
    return found


def main(arguments: list[str]) -> int:
    """Prints the collisions."""
    folders = [pathlib.Path(a) for a in arguments] or [
        *sorted({file.parent for file in SOURCES.rglob("*.cc")}),
        *TESTS,
    ]
    found = [f"{folder}: {line}" for folder in folders for line in collisions(folder)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
