document.querySelectorAll(".iap:not([data-on])").forEach((root) => {
  const svg = root.querySelector("svg.ag"), frame = root.querySelector(".ag-frame"), list = root.querySelector("ol");
  if (!svg || !list) return;
  root.dataset.on = "";
  const items = [...list.children], states = items.map((item) => JSON.parse(item.dataset.s)), last = items.length - 1;
  const byKey = (name) => {
    const found = {};
    svg.querySelectorAll("[data-" + name + "]").forEach((el) => { found[el.dataset[name]] = el; });
    return found;
  };
  const boxes = byKey("n"), edges = byKey("e"), values = byKey("v"), badges = byKey("k"), grads = byKey("g");
  const key = "Numbers on boxes count the steps" + (svg.querySelector(".iap-never") ? "; dashed gray boxes never run." : ".");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const make = (tag, parent, props) => Object.assign(parent.appendChild(document.createElement(tag)), props);
  const bar = document.createElement("div");
  bar.className = "iap-bar";
  frame.after(bar);
  let at = 0, timer = 0;
  const button = (label, icon, act) => {
    const made = make("button", bar, { type: "button", title: label, onclick: act });
    made.setAttribute("aria-label", label);
    made.innerHTML = '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="' + icon + '"/></svg>';
    return made;
  };
  const PLAY = "M5 3l12 7-12 7z", PAUSE = "M4 3h4v14H4zM12 3h4v14h-4z";
  const first = button("First step", "M2 3h3v14H2zM14 3l-8 7 8 7 2-2-5.6-5L16 5z", () => go(0));
  const back = button("Step back", "M12 3l-8 7 8 7 2-2-5.6-5L14 5z", () => go(at - 1));
  const play = button("Play", PLAY, () => toggle());
  const next = button("Step forward", "M8 3l8 7-8 7-2-2 5.6-5L6 5z", () => go(at + 1));
  const end = button("Last step", "M18 3h-3v14h3zM6 3l8 7-8 7-2-2 5.6-5L4 5z", () => go(last));
  const slider = make("input", bar, { type: "range", min: 0, max: last, value: 0, oninput: () => go(+slider.value) });
  slider.setAttribute("aria-label", "Step");
  const count = make("output", bar, {});
  const say = document.createElement("p"), more = document.createElement("p");
  say.className = "iap-say";
  say.setAttribute("aria-live", "polite");
  more.className = "iap-more";
  bar.after(say, more);
  root.querySelector("details").open = false;

  const toggle = (on = !timer) => {
    clearInterval(timer);
    if (on && at === last) show(0);
    timer = on ? setInterval(() => {
      if (!root.isConnected) clearInterval(timer);
      else if (at < last) show(at + 1);
      if (at >= last) toggle(false);
    }, 1400) : 0;
    play.setAttribute("aria-label", on ? "Pause" : "Play");
    play.title = on ? "Pause" : "Play";
    play.querySelector("path").setAttribute("d", on ? PAUSE : PLAY);
  };
  const go = (to) => { toggle(false); show(to); };

  const set = (map, key, ...names) => map[key] && map[key].classList.add(...names);
  const show = (to) => {
    at = Math.max(0, Math.min(last, to));
    [boxes, edges, values, badges, grads].forEach((map) => Object.values(map).forEach((el) =>
      el.classList.remove("iap-ran", "iap-now", "iap-lit", "iap-new", "iap-none", "iap-bad", "iap-err", "iap-got")));
    const filled = {};
    states.forEach((state) => { if (state.g && !(state.n in filled)) filled[state.n] = ".grad " + state.g[0]; });
    states.slice(0, at + 1).forEach((state, i) => {
      const now = i === at;
      (state.e || []).forEach(([key, kind]) => [edges, values].forEach((map) => {
        map[key] && map[key].classList.remove("iap-none", "iap-bad");
        set(map, key, kind ? "iap-lit" : "iap-none");
        if (kind === 2) set(map, key, "iap-bad");
        if (now) set(map, key, "iap-new");
      }));
      if (state.n) {
        set(boxes, state.n, now ? "iap-now" : "iap-ran");
        set(badges, state.n, "iap-ran");
        if (state.x) set(boxes, state.n, "iap-err");
      }
      if (state.g) {
        filled[state.n] = ".grad " + (now ? state.g.join(" → ") : state.g[1]);
        if (now) set(grads, state.n, "iap-new");
      }
      (state.r || []).forEach(([key, text]) => {
        set(boxes, key, "iap-got");
        filled[key] = "returned " + text;
      });
      if (state.a) svg.querySelectorAll(".ag-n:not(.iap-never)[data-n]").forEach((el) => el.classList.add("iap-ran"));
    });
    Object.keys(filled).forEach((key) => { if (grads[key]) grads[key].textContent = filled[key]; });
    items.forEach((item, i) => i === at ? item.setAttribute("aria-current", "step") : item.removeAttribute("aria-current"));
    const text = items[at].querySelector("span").textContent, small = items[at].querySelector("small");
    say.textContent = text;
    more.innerHTML = small ? small.innerHTML : at ? "" : key;
    const name = at === 0 ? "Start" : at === last ? "End" : "Step " + at + " of " + (last - 1);
    count.textContent = name;
    slider.value = at;
    slider.setAttribute("aria-valuetext", name);
    // Not disabled: a button that had the focus would lose it, and the keys with it.
    [[first, 0], [back, 0], [next, last], [end, last]].forEach(([el, edge]) => el.setAttribute("aria-disabled", at === edge));
    follow(boxes[at ? states[at].n : "r0"]);
  };
  const follow = (box) => {
    if (!box) return;
    const seen = frame.getBoundingClientRect(), its = box.getBoundingClientRect();
    const left = its.left < seen.left || its.right > seen.right ? its.left + its.width / 2 - seen.left - seen.width / 2 : 0;
    const top = its.top - 40 < seen.top || its.bottom + 60 > seen.bottom ? its.top - seen.top - seen.height / 3 : 0;
    if (left || top) frame.scrollBy({ left, top, behavior: still.matches ? "auto" : "smooth" });
  };
  root.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("summary, ol")) return;
    if (event.target === frame && event.key.startsWith("Arrow")) return;
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
    if (event.key in moves) go(moves[event.key]);
    else if (event.key === " " && event.target.tagName !== "BUTTON") toggle();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  let from = null;
  frame.addEventListener("touchstart", (event) => {
    const one = event.touches.length === 1 && frame.scrollWidth <= frame.clientWidth + 1;
    from = one ? [event.touches[0].clientX, event.touches[0].clientY] : null;
  }, { passive: true });
  frame.addEventListener("touchend", (event) => {
    if (!from) return;
    const x = event.changedTouches[0].clientX - from[0], y = event.changedTouches[0].clientY - from[1];
    if (Math.abs(x) > 40 && Math.abs(x) > 2 * Math.abs(y)) go(at + (x < 0 ? 1 : -1));
  }, { passive: true });
  if (frame.scrollHeight > frame.clientHeight + 1 || frame.scrollWidth > frame.clientWidth + 1) {
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "Drawing");
  }
  show(0);
});
