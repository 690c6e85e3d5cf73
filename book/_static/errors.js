// The index of errors: finds the entry of a pasted message or traceback, in the page, without a server.
// Reads a text as src/inside_autograd/pasted.py does; tests hold the two to the same answers.
(() => {
  "use strict";
  const box = document.getElementById("error-text");
  const says = document.getElementById("error-says");
  const form = document.getElementById("error-box");
  const folder = document.currentScript.src.replace(/[^/]*$/, "");
  // One heading for each entry, in the same order. Sphinx writes some ids in another form than the sources.
  const sections = [...document.querySelectorAll("article h3")].map((heading) => heading.closest("section"));
  const topics = [...new Set(sections.map((section) => section.parentElement))];
  let data, patterns, words, counts, sizes;

  const FRONT = /^(?:\s|\[\w+\]:|E\s(?=\s)|[>|+`*"'])*/;
  const NAME =
    "(?:[A-Za-z_]\\w*\\.)*(Exception|Unsupported|[A-Z]\\w*(?:Error|Exception|Failed|Interrupt|Exit|Warning))";
  const ERROR = new RegExp("^" + NAME + "(?:: ?(.*))?$");
  const WARNING = /^.{0,300}?:\d+: ([A-Za-z_]\w*Warning): (.*)$/;
  const WITHIN = new RegExp("(?:^|[^\\w.])" + NAME + ": (.*)$");
  const TRACEBACK = /^Traceback \(most recent call last\)/;
  const CHAINED = /^(?:During handling of the above exception|The above exception was the direct)/;
  const END = /^(?:Traceback \(most recent|File "|-{20,}|={10,}|[\w./\\-]+:\d+: )/;
  const WRAPPERS = ["ChildFailedError"];
  const LONGEST = 60;
  const ALIKE = 0.05;
  const oneSpace = (text) => text.replace(/\s+/g, " ").trim();
  const wordsOf = (text) => new Set((text.match(/[A-Za-z_]{2,}/g) || []).map((word) => word.toLowerCase()));
  const sum = (list) => list.reduce((total, number) => total + number, 0);

  const head = (line) => ERROR.exec(line) || WARNING.exec(line);

  function found(lines, i, category, message) {
    const parts = [message];
    for (const next of lines.slice(i + 1, i + 1 + LONGEST)) {
      if (END.test(next) || CHAINED.test(next) || head(next)) break;
      parts.push(next);
    }
    return { category, message: oneSpace(parts.join(" ")) };
  }

  function headed(lines) {
    let errors = [];
    const warnings = [];
    let chained = false;
    let inTraceback = false;
    lines.forEach((line, i) => {
      chained = chained || CHAINED.test(line);
      inTraceback = inTraceback || TRACEBACK.test(line);
      const match = head(line);
      if (!match || (match[2] === undefined && !inTraceback) || WRAPPERS.includes(match[1])) return;
      const one = found(lines, i, match[1], match[2] || "");
      if (one.category.endsWith("Warning")) {
        warnings.unshift(one);
      } else {
        errors = chained ? [one, ...errors] : [one];
        chained = inTraceback = false;
      }
    });
    return errors.length ? errors : warnings;
  }

  function within(lines) {
    const list = [];
    lines.forEach((line, i) => {
      const match = WITHIN.exec(line);
      if (match) list.unshift(found(lines, i, match[1], match[2]));
    });
    return list;
  }

  function lone(lines) {
    return lines.slice(0, LONGEST).map((_, i) => {
      const text = lines.slice(i, i + LONGEST).join(" ").replace(/^Error: /, "");
      return { category: "", message: oneSpace(text) };
    });
  }

  // The error that the text ends with, then those that led to it; or its warnings; or the text as it is.
  function read(text) {
    const written = text.replace(/\x1b\[[0-9;]*[A-Za-z]/g, "").split(/\r?\n/);
    const lines = written.map((line) => line.replace(FRONT, ""));
    for (const way of [headed, within]) {
      const list = way(lines);
      if (list.length) return list;
    }
    return [...lone(written), ...lone(lines)]; // a message alone may begin with a quotation mark of its own
  }

  function lookUp(text) {
    for (const { category, message } of read(text)) {
      const at = patterns.findIndex(
        (pattern, i) =>
          pattern.test(message) &&
          (!category || category.endsWith("Warning") === data[i].category.endsWith("Warning")),
      );
      if (at >= 0) return at;
    }
    return -1;
  }

  // How alike two texts are: the cosine between their sets of words, a rare word weighing more.
  const weight = (word) => Math.log(data.length / counts[word]) + 0.1;

  function nearest(text) {
    const part = oneSpace(text).toLowerCase();
    const asked = [...wordsOf(text)].filter((word) => Object.hasOwn(counts, word)).sort();
    const size = sum(asked.map(weight));
    return data
      .map((entry, i) => {
        const common = sum(asked.filter((word) => words[i].has(word)).map(weight));
        const whole = entry.messages.concat(entry.title).some((one) => one.toLowerCase().includes(part));
        return { i, whole, score: (common ? common / Math.sqrt(size * sizes[i]) : 0) + whole };
      })
      .filter((one) => one.score > ALIKE)
      .sort((a, b) => b.score - a.score || a.i - b.i);
  }

  function show(shown) {
    sections.forEach((section, i) => (section.hidden = !shown.includes(i)));
    topics.forEach((topic) => {
      topic.hidden = !sections.some((section) => section.parentElement === topic && !section.hidden);
    });
  }

  const linkTo = (i) => {
    const link = document.createElement("a");
    link.href = "#" + sections[i].id;
    link.textContent = data[i].title;
    return link;
  };

  function search() {
    const text = box.value;
    const all = data.map((_, i) => i);
    if (!text.trim()) {
      says.replaceChildren();
      show(all);
      return;
    }
    const at = lookUp(text);
    if (at >= 0) {
      says.replaceChildren("This is: ", linkTo(at));
      show([at]);
      return;
    }
    const near = nearest(read(text)[0].message);
    const whole = near.filter((one) => one.whole).map((one) => one.i);
    if (whole.length) {
      says.replaceChildren(whole.length === 1 ? "One entry holds this." : whole.length + " entries hold this.");
      show(whole);
    } else if (near.length) {
      const three = near.slice(0, 3).map((one) => one.i);
      says.replaceChildren("Not in the index. The nearest, which may not fit, are below.");
      show(three);
    } else {
      says.replaceChildren("Not in the index, and nothing in it is near. Here is the whole index.");
      show(all);
    }
  }

  // A link to an entry that the search has hidden shows it again.
  function follow() {
    const section = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (section && section.hidden) {
      box.value = "";
      search();
      section.scrollIntoView();
    }
  }

  function start() {
    data = window.errorIndex;
    patterns = data.map((entry) => new RegExp("^(?:" + entry.pattern + ")"));
    words = data.map((entry) => wordsOf(entry.title + " " + entry.messages.join(" ")));
    counts = {};
    words.forEach((set) => set.forEach((word) => (counts[word] = (counts[word] || 0) + 1)));
    sizes = words.map((set) => sum([...set].sort().map(weight)));
    box.addEventListener("input", search);
    form.addEventListener("reset", () => setTimeout(search));
    window.addEventListener("hashchange", follow);
    search();
  }

  // Who only reads the list does not load what the box searches. A script can be loaded from a disk too.
  let asked = false;
  function load() {
    if (asked) return;
    asked = true;
    const script = document.createElement("script");
    script.src = folder + "errors_data.js";
    script.onload = start;
    script.onerror = () => {
      asked = false;
      says.textContent = "The index could not be loaded: check the connection and type again.";
    };
    document.head.append(script);
  }

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const name of ["focusin", "input", "pointerenter"]) form.addEventListener(name, load);
  if (box.value) load(); // a browser may have kept the text of an earlier visit
})();
