"""Cut the maths font down to the characters that formulas use.

    python tools/math_font.py stix-two-math.woff2

The book ships STIX Two Math (SIL Open Font License, see book/_static/fonts/OFL.txt), because few phones have
a font that can stretch brackets. The whole font is 400 kB; what is kept here is a seventh of it.
"""

import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "book" / "_static" / "fonts" / "stix-two-math-subset.woff2"
KEEP = (
    "20-7E A0 AC AF B0-B7 D7 F7 131 237 2C6 2DC 300-308 391-3A9 3B1-3C9 3D1 3D5 3F5 "  # Latin, Greek, accents
    "2010-2016 2018-201D 2020-2022 2026 2032-2034 203E 2044 2061-2063 20D0 20D1 20D6 20D7 20DB "
    "2102 210B 2110 2112 2113 2115 211A 211D 2124 212C 2130 2131 2133 "  # the letters missing from the blocks
    "2190-2199 21A6 21BC 21C0 21D0-21D4 27F5-27FA 27FC "  # arrows
    "2200-2209 220B 220F-2214 2216-221E 2220 2223-222C 222E 2234 2235 223C 2243 2245 2248 2254 225C "
    "2260-2265 226A 226B 227A 227B 2282-2287 228E 2293-229A 22A4 22A5 22C0-22C6 22EE-22F1 "
    "2308-230B 23B4 23B5 23DC-23DF 25A1 27E8 27E9 2A00-2A02 "  # fences, braces, large operators
    "1D400-1D467 1D49C-1D4CF 1D538-1D56B 1D6A4-1D71B"  # bold, italic, script, double-struck
)


def main(arguments):
    """Write the subset.

    Args:
        arguments: the path of the whole font, alone in a list.

    Returns:
        0, or 2 with one sentence on standard error when the path is missing or wrong.
    """
    if len(arguments) != 1 or not Path(arguments[0]).is_file():
        print("Say which font file to cut down: python tools/math_font.py FILE.woff2", file=sys.stderr)
        return 2
    unicodes = ",".join(f"U+{part}" for part in KEEP.split())
    options = ["--flavor=woff2", "--layout-features=*", "--no-hinting", "--name-IDs=0,14", "--notdef-outline"]
    command = [sys.executable, "-m", "fontTools.subset", arguments[0], f"--unicodes={unicodes}"]
    subprocess.run([*command, f"--output-file={TARGET}", *options], check=True)
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
