#!/usr/bin/env python3
"""Checks the texts: every relative link of a Markdown file leads to a file (and, with a #, to a heading of it), and
docs/SUMMARY.md lists every page of docs/ once. Prints what is wrong; fails if anything is."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")


def text_of(path):
    """The file without code, in which brackets are no links."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """What a # can lead to: headings as mdBook and code hosts name them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+\s+(.*?)\s*$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def wrong_links(page):
    for target in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = unquote(target).partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            yield f"{page.relative_to(ROOT)}: {target}: there is no such file"
        elif heading and path.suffix == ".md" and heading not in anchors(path):
            yield f"{page.relative_to(ROOT)}: {target}: there is no such heading"


def wrong_summary():
    docs = ROOT / "docs"
    listed = LINK.findall(text_of(docs / "SUMMARY.md"))
    pages = [p.relative_to(docs).as_posix() for p in docs.rglob("*.md") if p.name != "SUMMARY.md"]
    for page in sorted(set(pages) | set(listed)):
        if page not in pages:
            yield f"docs/SUMMARY.md: {page}: there is no such page"
        elif listed.count(page) != 1:
            yield f"docs/SUMMARY.md: {page} is listed {listed.count(page)} times"


def main():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    pages = [ROOT / name for name in names if name and (ROOT / name).exists()]
    wrong = [line for page in pages for line in wrong_links(page)] + list(wrong_summary())
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
