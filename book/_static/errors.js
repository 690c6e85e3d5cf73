// The index of errors: finds the entry of a pasted message or traceback, in the page, without a server.
// Reads a text as src/inside_autograd/pasted.py does; tests hold the two to the same answers.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("error-data").textContent);
  const box = document.getElementById("error-text");
  const says = document.getElementById("error-says");
  const form = document.getElementById("error-box");
  // One heading for each entry, in the same order. Sphinx writes some ids in another form than the sources.
  const sections = [...document.querySelectorAll("article h3")].map((heading) => heading.closest("section"));
  const topics = [...new Set(sections.map((section) => section.parentElement))];
  const patterns = data.map((entry) => new RegExp("^(?:" + entry.pattern + ")"));

  const NAME = "(Exception|Unsupported|[A-Z]\\w*(?:Error|Exception|Failed|Interrupt|Exit|Warning))";
  const FRONT = /^\s*(?:(?:\[\w+\]:|E {1,7}|>|\|)\s?)*/;
  const ERROR = new RegExp("^\\s*(?:[A-Za-z_]\\w*\\.)*" + NAME + "(?:: ?(.*))?$");
  const WARNING = /^.{0,300}?:\d+: ([A-Za-z_]\w*Warning): (.*)$/;
  const CHAINED = /^\s*(?:During handling of the above exception|The above exception was the direct)/;
  const END = /^\s*(?:Traceback \(most recent|File "|-{20,}|={10,}|[\w./\\-]+:\d+: )/;
  const LONGEST = 60;
  const oneSpace = (text) => text.replace(/\s+/g, " ").trim();
  const wordsOf = (text) => new Set((text.match(/[A-Za-z_]{2,}/g) || []).map((word) => word.toLowerCase()));

  function head(line) {
    return ERROR.exec(line) || WARNING.exec(line);
  }

  // The error that the text ends with, then those that led to it; or its warnings; or the text as it is.
  function read(text) {
    const lines = text.replace(/\x1b\[[0-9;]*[A-Za-z]/g, "").split(/\r?\n/).map((line) => line.replace(FRONT, ""));
    let errors = [];
    const warnings = [];
    let chained = false;
    lines.forEach((line, i) => {
      chained = chained || CHAINED.test(line);
      const found = head(line);
      if (!found || found[2] === undefined) return;
      const message = [found[2]];
      for (const next of lines.slice(i + 1, i + 1 + LONGEST)) {
        if (END.test(next) || CHAINED.test(next) || head(next)) break;
        message.push(next);
      }
      const one = { category: found[1], message: oneSpace(message.join(" ")) };
      if (one.category.endsWith("Warning")) {
        warnings.unshift(one);
      } else {
        errors = chained ? [one, ...errors] : [one];
        chained = false;
      }
    });
    if (errors.length) return errors;
    return warnings.length ? warnings : [{ category: "", message: oneSpace(lines.join(" ")) }];
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

  const words = data.map((entry) => wordsOf(entry.title + " " + entry.messages.join(" ")));
  const count = {};
  words.forEach((set) => set.forEach((word) => (count[word] = (count[word] || 0) + 1)));
  const total = (list) => list.reduce((sum, word) => sum + 1 / count[word], 0);

  // The entries that hold what was typed so far come first: a part of a message, or a name.
  function nearest(text) {
    const asked = oneSpace(text).toLowerCase();
    const askedWords = wordsOf(text);
    return data
      .map((entry, i) => {
        const whole = entry.messages.concat(entry.title).some((message) => message.toLowerCase().includes(asked));
        const common = [...words[i]].filter((word) => askedWords.has(word));
        return { i, score: (whole ? 1000 : 0) + total(common) / Math.sqrt(1 + total([...words[i]])) };
      })
      .filter((one) => one.score > 0.3)
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
    const whole = near.filter((one) => one.score >= 1000).map((one) => one.i);
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

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(search));
  box.addEventListener("input", search);
  window.addEventListener("hashchange", follow);
  search(); // a browser may have kept the text of an earlier visit
})();
