"""Can words be read on what lies behind them?"""

import re

# For each element found: its color, and the first opaque color behind its middle.
COLORS = """(root, selector) => {
    const canvas = document.createElement('i')
    canvas.style.background = 'Canvas'
    document.body.append(canvas)
    const bare = getComputedStyle(canvas).backgroundColor
    canvas.remove()
    const paint = e => e instanceof SVGElement && e.localName !== 'svg'
        ? getComputedStyle(e).fill : getComputedStyle(e).backgroundColor
    const clear = c => c === 'none' || /^rgba\\(.*, 0\\)$/.test(c)
    const all = [...root.querySelectorAll(selector)]
    const shown = all.filter(e => e.textContent.trim() && e.checkVisibility())
    return shown.map(e => {
        e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'})
        const box = e.getBoundingClientRect()
        const stack = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2)
        const isWord = x => x.localName === 'text' || x.localName === 'tspan'
        return {
            text: e.textContent.trim().slice(0, 60),
            color: getComputedStyle(e)[isWord(e) ? 'fill' : 'color'],
            behind: stack.filter(x => !isWord(x)).map(paint).find(c => !clear(c)) || bare,
            hit: stack.some(x => root.contains(x)),
        }
    })
}"""


def contrast(first, second):
    """The contrast of two opaque colors after WCAG 2: 1 to 21."""

    def luminance(color):
        match = re.fullmatch(r"rgb\((\d+), (\d+), (\d+)\)", color)
        assert match, f"{color} is no opaque color"
        linear = []
        for part in match.groups():
            value = int(part) / 255
            linear.append(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def assert_words_stand_out(root, selector):
    """Words have a contrast of 4.5 at least, and nothing lies over them; returns how many were looked at."""
    words = root.evaluate(f"root => ({COLORS})(root, {selector!r})")
    weak = []
    for word in words:
        assert word["hit"], f"{word['text']!r} lies under something else"
        ratio = contrast(word["color"], word["behind"])
        if ratio < 4.5:
            weak.append(f"{word['text']!r}: {ratio:.2f}, {word['color']} on {word['behind']}")
    assert not weak, "\n".join([f"{len(weak)} of {len(words)} are hard to read:", *weak[:5]])
    return len(words)
