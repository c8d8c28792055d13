#!/usr/bin/env python3
"""An mdBook preprocessor: a link that leaves docs/ leads nowhere in the built book, so there it becomes its text and the
path in the repository."""

import json
import posixpath
import re
import sys

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?![a-z]+:)[^()\s#]+)(#[^()\s]*)?\)")


def inside(chapter_path, text):
    def replaced(found):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(chapter_path), found[2]))
        if not target.startswith("../"):
            return found[0]
        path = f"`{target[3:]}`"
        return path if posixpath.basename(target) == found[1].strip("`") else f"{found[1]} ({path})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(replaced, part) for part in parts)


def walk(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            chapter["content"] = inside(chapter["path"] or "", chapter["content"])
            walk(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return 0
    _, book = json.load(sys.stdin)
    walk(book.get("items") or book.get("sections"))
    json.dump(book, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
