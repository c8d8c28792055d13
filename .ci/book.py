#!/usr/bin/env python3
"""Checks the built book: every link and picture of every page leads to a file of the book, and to a place in it. With
--browser PROGRAM all pages are opened in that Chromium at two widths: no console errors, nothing wider than the window.

    .ci/book.py target/book [--browser /usr/bin/chromium] [--pictures FOLDER]
"""

import argparse
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WIDTHS = (390, 1200)


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.links += [named[key] for key in ("href", "src") if named.get(key)]
        self.places |= {named[key] for key in ("id", "name") if named.get(key)}


def wrong_links(book):
    pages = {path.resolve(): Page(path) for path in sorted(book.rglob("*.html"))}
    for path, page in pages.items():
        if path.name in ("404.html", "print.html", "toc.html"):
            continue  # made by mdBook: other bases, and all pages in one
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{path.relative_to(book.resolve())}: {link}: there is no such file"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{path.relative_to(book.resolve())}: {link}: there is no such place"


def wrong_in_browser(book, program, pictures):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            said = []
            page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: said.append(str(error)))
            for path in sorted(book.rglob("*.html")):
                if path.name in ("404.html", "print.html", "toc.html"):
                    continue
                name = path.relative_to(book)
                page.goto(path.resolve().as_uri())
                for words in said:
                    yield f"{name} at {width}: {words}"
                said.clear()
                wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                if wide > 1:
                    yield f"{name} at {width}: {wide} pixels wider than the window"
                unseen = page.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
                for picture in unseen:
                    yield f"{name} at {width}: {picture} is not drawn"
                if pictures:
                    pictures.mkdir(parents=True, exist_ok=True)
                    page.screenshot(path=pictures / f"{str(name).replace('/', '-')}-{width}.png", full_page=True)
            page.close()
        browser.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("book", type=Path)
    arguments.add_argument("--browser")
    arguments.add_argument("--pictures", type=Path)
    given = arguments.parse_args()
    wrong = list(wrong_links(given.book))
    if given.browser:
        wrong += wrong_in_browser(given.book, given.browser, given.pictures)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
