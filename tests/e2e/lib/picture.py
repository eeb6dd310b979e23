#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""picture.py FILE...: checks that each SVG or HTML file is well-formed XML and needs nothing else: no script, no handler, no reference. For
each one prints what is in it: rows (arrows of packets), lost (broken arrows), again (retransmissions), bands (folded exchanges).
picture.py --text FILE: prints the text of a file, an element a line."""
import sys
import xml.etree.ElementTree as ET

ALLOWED = {"svg", "g", "rect", "line", "path", "polygon", "polyline", "circle", "text", "tspan", "title", "style", "html", "head", "meta",
           "body", "header", "h1", "p", "div", "details", "summary", "input", "label"}


def local(name):
    return name.rpartition("}")[2]


def check(file, root):
    bad = 0
    for element in root.iter():
        names = {local(a): v for a, v in element.attrib.items()}
        wrong = [a for a in names if a.startswith("on") or a in ("href", "src", "action", "data")]
        if local(element.tag) not in ALLOWED or wrong or "url(" in (element.text or "") or "@import" in (element.text or ""):
            print(f"{file}: element {local(element.tag)}, attributes {wrong}")
            bad += 1
    return bad


def classes(root, wanted):
    return sum(wanted in element.get("class", "").split() for element in root.iter() if local(element.tag) == "g")


def main():
    bad = 0
    if sys.argv[1] == "--text":
        for element in ET.parse(sys.argv[2]).getroot().iter():
            if local(element.tag) in ("text", "title"):
                print("".join(element.itertext()).replace("\n", "; "))
        return 0
    for file in sys.argv[1:]:
        root = ET.parse(file).getroot()
        bad += check(file, root)
        bands = sum(local(e.tag) == "details" for e in root.iter())
        rows = [e for e in root.iter() if "row" in e.get("class", "").split()]
        lost = sum("lost" in e.get("class").split() for e in rows)
        again = sum("again" in e.get("class").split() for e in rows)
        print(f"rows {len(rows)} lost {lost} again {again} bands {bands}")
    return bad > 0


sys.exit(main())
