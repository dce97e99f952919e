// The report's script: nothing on the page needs it. It reads numbers off the curves, widens the timeline, shows what
// belongs together, and loads the page again while the run goes on. It has no '<' and no '&', so that the page is XML.
#include "cinta/train/report_sections.h"

namespace cinta::train {

const std::string_view report_script = R"script(
(() => {
"use strict";
const all = (what, within) => Array.from((within || document).querySelectorAll(what));
const make = (name, text) => { const one = document.createElement(name); one.textContent = text; return one; };
const kept = (name, value) => {
  try {
    if (value === undefined) return sessionStorage.getItem(location.pathname + name);
    sessionStorage.setItem(location.pathname + name, value);
  } catch (error) { /* private windows keep nothing */ }
  return null;
};

// The numbers under the pointer, read off the curves.
for (const svg of all("svg[data-frame]")) {
  const [left, right, top, bottom, xLow, xHigh, yLow, yHigh] = svg.dataset.frame.split(" ").map(Number);
  const curves = all("path[data-name]", svg).map(path => ({
    name: path.dataset.name,
    points: Array.from(path.getAttribute("d").matchAll(/[ML]([-\d.]+) ([-\d.]+)/g), m => [Number(m[1]), Number(m[2])])
  }));
  if (curves.length === 0) continue;
  const ruler = document.createElementNS("http://www.w3.org/2000/svg", "path");
  ruler.setAttribute("class", "ruler");
  const reading = make("div", "");
  reading.className = "reading";
  const hide = () => { ruler.remove(); reading.remove(); };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), unit = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * unit;
    const near = curves.map(curve => curve.points.reduce(
      (best, point) => Math.abs(best[0] - x) > Math.abs(point[0] - x) ? point : best));
    const at = near.reduce((best, point) => Math.abs(best[0] - x) > Math.abs(point[0] - x) ? point : best)[0];
    const lines = ["step " + Math.round(xLow + (at - left) / (right - left) * (xHigh - xLow))];
    curves.forEach((curve, i) => {
      const value = yLow + (bottom - near[i][1]) / (bottom - top) * (yHigh - yLow);
      if (8 > Math.abs(near[i][0] - at)) lines.push(curve.name + " " + value.toPrecision(3));
    });
    ruler.setAttribute("d", "M" + at + " " + top + "V" + bottom);
    svg.append(ruler);
    reading.textContent = lines.join("\n");
    svg.parentNode.append(reading);
    const px = at / unit, space = box.width - px;
    reading.style.left = (space > reading.offsetWidth + 24 ? px + 18 : px - reading.offsetWidth - 6) + "px";
    reading.style.top = top / unit + 8 + "px";
  });
}

// A wider timeline.
const timeline = document.getElementById("timeline");
if (timeline) {
  const wide = timeline.firstElementChild, tools = make("span", "");
  let zoom = Number(kept("zoom")) || 1;
  const apply = factor => {
    const middle = (timeline.scrollLeft + timeline.clientWidth / 2) / wide.offsetWidth;
    zoom = Math.min(64, Math.max(1, zoom * factor));
    wide.style.width = 100 * zoom + "%";
    timeline.scrollLeft = middle * wide.offsetWidth - timeline.clientWidth / 2;
    kept("zoom", zoom);
  };
  for (const [text, factor, title] of [["\u2212", 0.5, "shorter"], ["+", 2, "longer"]]) {
    const button = make("button", text);
    button.title = title;
    button.addEventListener("click", () => apply(factor));
    tools.append(button);
  }
  tools.className = "tools";
  timeline.parentNode.prepend(tools);
  apply(1);
}

// An op's forward, its backward and its place on the tape.
for (const one of all("[data-n]")) {
  const same = () => all("[data-n='" + one.dataset.n + "']");
  one.addEventListener("pointerenter", () => same().forEach(other => other.classList.add("mark")));
  one.addEventListener("pointerleave", () => same().forEach(other => other.classList.remove("mark")));
}

// The page's age, and the next version of it.
const written = document.getElementById("written"), running = document.documentElement.dataset.state === "running";
const age = () => Date.now() / 1000 - Number(written.dataset.time);
const ago = seconds => seconds > 5400 ? Math.round(seconds / 3600) + " h" : seconds > 90 ? Math.round(seconds / 60) + " min"
  : Math.max(0, Math.round(seconds)) + " s";
const date = written.textContent;
const tell = () => {
  const silent = running ? age() > 900 : false;
  written.textContent = `${date} (${ago(age())} ago${silent ? "; is it still running?" : ""})`;
};
tell();
setInterval(tell, 1000);
if (running) {
  let moved = 0;
  addEventListener("pointermove", () => { moved = Date.now(); });
  const label = make("label", " reload"), box = make("input", ""), tools = make("span", "");
  box.type = "checkbox";
  box.checked = kept("reload") !== "no";
  box.addEventListener("change", () => kept("reload", box.checked ? "yes" : "no"));
  label.prepend(box);
  tools.className = "tools";
  tools.append(label);
  document.querySelector("header").prepend(tools);
  setInterval(() => {
    const wanted = box.checked ? document.visibilityState === "visible" : false;
    if (wanted ? Date.now() - moved > 4000 : false) location.reload();
  }, 5000);
}
})();
)script";

}  // namespace cinta::train
