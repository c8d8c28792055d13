#!/usr/bin/env python3
"""No circle of files that import each other, in any crate's `src`.

    .ci/imports.py [CRATE...]      crates are folders of crates/

reads the paths that begin with `crate::`, `super::` or `self::`, in `use` lines and elsewhere, and follows re-exports
to the file an item is from. Files and those in their own folder may name each other; modules under `cfg(test)` are
left out. Prints each circle with the items that close it; the exit code is 1 if there is one.
"""

import re
import sys
from pathlib import Path


def strip_comments(text):
    """Comments and strings are blanked, so that neither counts."""
    pattern = r'//[^\n]*|/\*.*?\*/|r#*"(?:.*?)"#*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\''
    return re.sub(pattern, lambda m: " " if m.group(0).startswith("/") else '""', text, flags=re.S)


def without_tests(text):
    """Items under #[cfg(test)] or #[cfg(all(test, ...))] are cut out."""
    out, at = [], 0
    for found in re.finditer(r"#\[cfg\((?:all\()?(?:test|loom)\b[^\]]*\]", text):
        if found.start() < at:
            continue
        out.append(text[at : found.start()])
        end = found.end()
        while end < len(text) and text[end] not in ";{":
            end += 1
        if end < len(text) and text[end] == "{":
            depth = 0
            while end < len(text):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
                if depth == 0:
                    break
        else:
            end += 1
        at = end
    out.append(text[at:])
    return "".join(out)


def leaves(tree, prefix=()):
    """The paths of a `use` tree: `a::{b, c::d as e}` is (a, b), (a, c, d). With the name each has here."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, name = tree.partition(" as ")
        parts = prefix + tuple(p.strip() for p in path.split("::") if p.strip())
        if parts and parts[-1] == "self":
            parts = parts[:-1]
        yield parts, name.strip() or (parts[-1] if parts else "")
        return
    head = prefix + tuple(p.strip() for p in tree[:brace].split("::") if p.strip())
    depth, start, inner = 0, 0, tree[brace + 1 : tree.rfind("}")]
    for i, c in enumerate(inner + ","):
        depth += {"{": 1, "}": -1}.get(c, 0)
        if c == "," and depth == 0:
            if inner[start:i].strip():
                yield from leaves(inner[start:i], head)
            start = i + 1


class Crate:
    def __init__(self, root):
        self.files = {}
        for path in sorted(root.rglob("*.rs")):
            parts = path.relative_to(root).with_suffix("").parts
            if parts in (("lib",), ("main",)):
                parts = ()
            elif parts[-1] == "mod":
                parts = parts[:-1]
            text = without_tests(strip_comments(path.read_text()))
            self.files[parts] = (path, text)
        self.inline, self.exports = {}, {}
        for module, (_, text) in self.files.items():
            self.exports[module] = {}
            for found in re.finditer(r"\bpub(?:\([^)]*\))?\s+use\s+([^;]+);", text):
                for path, name in leaves(found.group(1)):
                    self.exports[module][name] = path

    def absolute(self, module, path):
        """A path that begins in this crate, from the root; else nothing."""
        head = path[0] if path else ""
        if head == "crate":
            return path[1:]
        if head == "self":
            return module + path[1:]
        if head == "super":
            at = module
            while path and path[0] == "super":
                if not at:
                    return None
                at, path = at[:-1], path[1:]
            return at + path
        if module + (head,) in self.files:
            return module + path
        return None

    def owner(self, path, depth=0):
        """The file that has the item `path`, behind re-exports; and the file named by the path if that differs."""
        module = path
        while module not in self.files:
            module = module[:-1]
        rest = path[len(module) :]
        if rest and depth < 8:
            exported = self.exports[module].get(rest[0])
            if exported is not None:
                onward = self.absolute(module, exported)
                if onward is None:
                    return None  # another crate's
                if onward + rest[1:] != path:
                    return self.owner(onward + rest[1:], depth + 1)
            for name, target in self.exports[module].items():
                if name == "*":
                    base = self.absolute(module, target[:-1])
                    if base is not None and re.search(
                        rf"\bpub\b[^;{{(]*\b{re.escape(rest[0])}\b", self.files.get(base, (0, ""))[1]
                    ):
                        return self.owner(base + rest, depth + 1)
        return module

    def edges(self):
        edges = {module: {} for module in self.files}
        for module, (_, text) in self.files.items():
            named = []
            uses = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
            for found in uses.finditer(text):
                for path, _ in leaves(found.group(2)):
                    named.append(path)
            for found in re.finditer(r"\b(?:crate|super|self)(?:::\w+)+", uses.sub(";", text)):
                named.append(tuple(found.group(0).split("::")))
            for path in named:
                if path and path[-1] == "*":
                    path = path[:-1]
                absolute = self.absolute(module, path)
                if absolute is None:
                    continue
                owner = self.owner(absolute)
                if owner is None or owner == module:
                    continue
                kin = owner[: len(module)] == module or module[: len(owner)] == owner
                if not kin:
                    edges[module].setdefault(owner, "::".join(absolute))
        return edges


def circles(edges):
    """Strongly connected components of more than one file (Tarjan's algorithm)."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in edges[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while True:
                w = stack.pop()
                on.discard(w)
                part.append(w)
                if w == v:
                    break
            if len(part) > 1:
                found.append(part)

    sys.setrecursionlimit(10000)
    for v in edges:
        if v not in index:
            visit(v)
    return found


def main():
    here = Path(__file__).resolve().parent.parent / "crates"
    names = sys.argv[1:] or sorted(p.name for p in here.iterdir() if (p / "src").is_dir())
    bad = False
    for name in names:
        crate = Crate(here / name / "src")
        edges = crate.edges()
        for part in circles(edges):
            bad = True
            print(f"{name}: {len(part)} files import each other in a circle")
            for module in sorted(part):
                for owner, item in sorted(edges[module].items()):
                    if owner in part:
                        print(f"    {'/'.join(module) or 'root'} -> {'/'.join(owner) or 'root'}  ({item})")
    sys.exit(bad)


if __name__ == "__main__":
    main()
