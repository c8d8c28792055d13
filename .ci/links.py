#!/usr/bin/env python3
"""Checks the texts: every relative link of a Markdown file leads to a file (and, with a #, to a heading of it), and
docs/SUMMARY.md lists every page of docs/ once; each page says in its first lines who it is for; what newcomers ask is
answered within two clicks from the README. Prints what is wrong; fails if anything is."""

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


# What a newcomer asks, and words without which a section is no answer.
QUESTIONS = {
    "what is a PE": ("processing element", "thread"),
    "why does my solve stop early": ("tolerance", "change"),
    "how do I run on 4 GPUs": ("--pes 4",),
    "is my sum reproducible": ("same bits",),
    "where do I add an element type": ("element", "file"),
}
CLICKS = 2


def sections(path):
    """The text below each heading, by its anchor; all of the page by None."""
    text = path.read_text()
    found = {None: text}
    for part in re.split(r"^(?=#+ )", text, flags=re.M):
        heading = re.match(r"#+\s+(.*?)\s*$", part, flags=re.M)
        if heading:
            found[re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")] = part
    return found


def targets(path):
    """Pages and headings that the links of a page lead to."""
    for target in LINK.findall(text_of(path)):
        name, _, heading = unquote(target).partition("#")
        to = (path.parent / name).resolve() if name else path
        if not re.match(r"[a-z]+:", target) and to.suffix == ".md" and to.exists():
            yield to, heading or None


def unanswered():
    """Questions whose words are not in a section that is headed by them, or linked by them, and near the README."""
    near = {ROOT / "README.md": 0}
    places = {(ROOT / "README.md", None)}
    for click in range(CLICKS):
        for page in [page for page, clicks in near.items() if clicks == click]:
            for to, heading in targets(page):
                places.add((to, heading))
                near.setdefault(to, click + 1)
    for question, words in QUESTIONS.items():
        anchor = re.sub(r"[^\w\- ]", "", question.lower()).replace(" ", "-")
        asked = {(page, heading) for page, heading in places if heading == anchor}
        answers = [sections(page).get(heading, "") for page, heading in asked]
        if not any(all(word in answer for word in words) for answer in answers):
            yield f"README.md: '{question}' is not answered within {CLICKS} clicks"


READERS = re.compile(r"^\*For [^*]+\*", flags=re.M)
HEAD = 12  # lines


def for_nobody():
    """Pages of docs that do not say who they are for."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        head = "\n".join(page.read_text().splitlines()[:HEAD])
        if page.name != "SUMMARY.md" and not READERS.search(head):
            yield f"{page.relative_to(ROOT)}: its first lines do not say who it is for (*For ...*)"


def main():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    pages = [ROOT / name for name in names if name and (ROOT / name).exists()]
    wrong = [line for page in pages for line in wrong_links(page)] + list(wrong_summary())
    wrong += list(unanswered()) + list(for_nobody())
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
