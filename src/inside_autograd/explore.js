document.querySelectorAll(".NAME:not([data-on])").forEach((box) => {
  box.dataset.on = "";
  const panel = box.querySelector(".iax-controls");
  const inputs = [...panel.querySelectorAll("input, select")];
  const frames = [...box.querySelectorAll(":scope > .iax-frame")];
  const at = (input) =>
    input.type === "checkbox" ? +input.checked : input.tagName === "SELECT" ? input.selectedIndex : +input.value;
  const update = () => {
    const key = inputs.map(at).join(",");
    frames.forEach((frame) => { frame.hidden = frame.dataset.at !== key; });
    inputs.filter((input) => input.type === "range").forEach((input) => {
      const text = JSON.parse(input.dataset.values)[+input.value];
      input.setAttribute("aria-valuetext", text);
      input.parentElement.nextElementSibling.textContent = text;
    });
  };
  inputs.forEach((input) => { input.addEventListener("input", update); });
  panel.hidden = false;
  update();
});
