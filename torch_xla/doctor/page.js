"use strict";
// Draws the report from the data in the page. Text of the user's program is only ever set as text.

const data = JSON.parse(document.getElementById("data").textContent);
const report = document.getElementById("report");
const tip = document.getElementById("tip");

// --- Elements ---

function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function drawing(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "tip") explain(node, value);
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function explain(node, text) {
  node.addEventListener("pointermove", (event) => {
    tip.textContent = text;
    tip.hidden = false;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
  });
  node.addEventListener("pointerleave", () => { tip.hidden = true; });
}

function section(id, title, explanation, ...children) {
  report.append(element("section", { id },
    element("h2", {}, title), element("p", { class: "faint" }, explanation), ...children));
}

function table(columns, rows) {
  const head = columns.map(([name, kind]) => element("th", { class: kind || "" }, name));
  const body = rows.map((row) => element("tr", {}, ...row.map(
    (cell, i) => element("td", { class: columns[i][1] || "" }, cell))));
  return element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)));
}

function legend(entries) {
  return element("div", { class: "legend" }, ...entries.map(([color, text]) =>
    element("span", {}, element("i", { style: `background:${color}` }), text)));
}

// --- Numbers ---

function time(seconds) {
  if (seconds === 0) return "0";
  if (seconds >= 10) return seconds.toFixed(1) + " s";
  if (seconds >= 1) return seconds.toFixed(2) + " s";
  if (seconds >= 0.1) return (seconds * 1e3).toFixed(0) + " ms";
  if (seconds >= 0.01) return (seconds * 1e3).toFixed(1) + " ms";
  if (seconds >= 0.0001) return (seconds * 1e3).toFixed(2) + " ms";
  return (seconds * 1e6).toFixed(1) + " µs";
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return (count === 0 ? "0" : (Number.isInteger(count) ? count : count.toFixed(1)) + " " + units[unit]);
}

function percent(share) {
  return (share * 100).toFixed(share < 0.1 ? 1 : 0) + " %";
}

function ticks(from, to, most, base = 10) {
  const rough = (to - from) / most;
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const steps = base === 10 ? [1, 2, 5, 10] : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024];
  const width = steps.map((n) => n * power).find((n) => n >= rough);
  const found = [];
  for (let n = Math.ceil(from / width); n * width <= to; n += 1) found.push(n * width);
  return found;
}

const kindNames = { ...data.phaseNames, load: "making batches", doctor: "observing (not counted)", run: "programs on the device",
  kernel: "kernels", transfer: "transfers" };

function color(kind) {
  return kindNames[kind] ? `var(--${kind})` : "var(--other)";
}

// --- Head ---

function drawHead() {
  const name = [data.script, ...data.arguments].join(" ");
  const button = element("button", { type: "button" }, "Light / dark");
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  report.append(element("header", {}, element("div", {},
    element("h1", {}, name),
    element("p", { class: "faint" }, `The program ${data.ended.how}. ` + (data.device ? `Device: ${data.device}.` : "It used no xla device."))), button));
}

function drawStep() {
  const steps = data.steps;
  if (!steps.seconds) {
    section("step", "Where a step's time goes", "The program ended no two steps (torch_xla.sync()), so there is nothing to measure a step by.");
    return;
  }
  const lost = data.causes.reduce((sum, cause) => sum + cause.seconds_per_step, 0);
  const figure = (value, name) => element("div", { class: "figure" }, element("b", {}, value), element("span", { class: "faint" }, name));
  const kinds = Object.keys(data.phaseNames).filter((kind) => (steps.phases[kind] || 0) > 0.0005 * steps.seconds);
  const total = kinds.reduce((sum, kind) => sum + steps.phases[kind], 0);
  section("step", "Where a step's time goes", `Of the program's thread, the mean of ${steps.measured} steps.`,
    element("div", { class: "figures" }, figure(time(steps.seconds), "a step"), figure(String(steps.count), "steps"),
      figure(String(data.compilations.length), "compilations"), figure(bytes(data.memory.peak_bytes), "most memory"),
      ...(data.device_seconds === null ? [] : [figure(percent(Math.min(data.device_seconds / steps.seconds, 1)), "of a step the device works"),
        figure(time(data.overlap_seconds), "a step recorded meanwhile")]),
      figure(time(Math.min(lost, steps.seconds)), "a step found to be lost")),
    element("div", { class: "bar" }, ...kinds.map((kind) => element("div", {
      style: `flex:${steps.phases[kind] / total};background:${color(kind)}`,
      tip: `${kindNames[kind]}\n${time(steps.phases[kind])} a step, ${percent(steps.phases[kind] / steps.seconds)}` }))),
    legend(kinds.map((kind) => [color(kind), `${kindNames[kind]} ${time(steps.phases[kind])}`])));
}

function drawCauses() {
  if (data.causes.length === 0) {
    section("causes", "Causes", "What makes the steps slow, the most expensive first.",
      element("p", { class: "good" }, "Nothing was found that makes the steps slow."));
    return;
  }
  section("causes", "Causes", "What makes the steps slow, the most expensive first, and what a step would gain at most without each.",
    ...data.causes.map((cause, rank) => element("div", { class: "cause" },
      element("div", { class: "rank" }, String(rank + 1)),
      element("div", {},
        element("h3", {}, cause.title, element("span", { class: "kind" }, cause.kind)),
        element("div", { class: "cost" },
          element("div", { class: "track" }, element("div", { style: `width:${cause.share * 100}%` })),
          element("b", {}, `${time(cause.seconds_per_step)} a step`), element("span", { class: "faint" }, percent(cause.share))),
        cause.place ? element("pre", {}, element("span", { class: "mono faint" }, cause.place + "  "), element("code", {}, cause.code)) : null,
        ...cause.details.map((text) => element("p", { class: "faint" }, text)),
        element("p", { class: "remedy" }, cause.remedy)))));
}

// --- The timeline ---

function drawTimeline() {
  const { steps, lanes } = data.timeline;
  if (steps.length === 0) return;
  const [first, last] = [steps[0][0], steps[steps.length - 1][1]];
  const shown = steps.slice(-Math.min(6, steps.length));
  const start = { from: shown[0][0], to: shown[shown.length - 1][1] };
  let view = { ...start };
  const [width, left, laneHeight] = [1080, 96, 40];
  const height = lanes.length * laneHeight + 40;
  const picture = drawing("svg", { viewBox: `0 0 ${width} ${height}`, class: "timeline", role: "img", "aria-label": "Timeline of the last steps" });
  const x = (t) => left + (t - view.from) / (view.to - view.from) * (width - left);

  function draw() {
    picture.replaceChildren();
    for (const t of ticks(view.from, view.to, 8)) {
      picture.append(drawing("line", { x1: x(t), x2: x(t), y1: 16, y2: height - 22, class: "axis" }),
        drawing("text", { x: x(t), y: height - 6, "text-anchor": "middle" }, time(t - first)));
    }
    lanes.forEach((lane, row) => {
      const top = 20 + row * laneHeight;
      picture.append(drawing("text", { x: 0, y: top + 18 }, lane.name));
      if (row === 0) picture.append(band(view.from, view.to, top, "python", "Python and recording"));
      for (const [from, to, kind, label, place] of lane.spans) {
        if (to > view.from && from < view.to) picture.append(band(from, to, top, kind, label, place));
      }
    });
    for (const [from, , index] of steps) {
      if (from < view.from || from > view.to) continue;
      picture.append(drawing("line", { x1: x(from), x2: x(from), y1: 4, y2: height - 22, class: "edge" }),
        drawing("text", { x: x(from) + 4, y: 13 }, `step ${index}`));
    }
  }

  function band(from, to, top, kind, label, place) {
    const [a, b] = [Math.max(x(from), left), Math.min(x(to), width)];
    const text = [kindNames[kind] || kind, label && label !== kindNames[kind] ? label : "", time(to - from), place || ""];
    return drawing("rect", { x: a, width: Math.max(b - a, 0.5), y: top, height: laneHeight - 12, rx: 2, fill: color(kind),
      tip: text.filter(Boolean).join("\n") });
  }

  function move(from, to) {
    const least = (last - first) * 1e-5;
    if (to - from < least) return;
    view = { from: Math.max(from, first), to: Math.min(to, last) };
    if (view.to - view.from < least) view = { ...start };
    draw();
  }

  function at(event) {
    const box = picture.getBoundingClientRect();
    const position = (event.clientX - box.left) / box.width * width;
    return view.from + Math.max(position - left, 0) / (width - left) * (view.to - view.from);
  }

  function zoom(center, factor) {
    move(center - (center - view.from) * factor, center + (view.to - center) * factor);
  }

  picture.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    zoom(at(event), event.deltaY > 0 ? 1.25 : 0.8);
  }, { passive: false });
  let held = null;
  picture.addEventListener("pointerdown", (event) => { held = at(event); picture.setPointerCapture(event.pointerId); });
  picture.addEventListener("pointerup", () => { held = null; });
  picture.addEventListener("pointermove", (event) => {
    if (held === null) return;
    const shift = Math.min(Math.max(held - at(event), first - view.from), last - view.to);
    move(view.from + shift, view.to + shift);
  });

  const tool = (name, action) => {
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", action);
    return button;
  };
  const middle = () => (view.from + view.to) / 2;
  const kinds = [...new Set(lanes.flatMap((lane) => lane.spans.map((span) => span[2])))];
  draw();
  section("timeline", "Timeline", "What each part did during the last steps. What lies above each other happens at the same time. " +
    "Drag to move; hold Ctrl and turn the wheel to zoom. Noting lines makes recording look longer here than it is; the figures leave that out.",
    element("div", { class: "tools" }, tool("Zoom in", () => zoom(middle(), 0.5)), tool("Zoom out", () => zoom(middle(), 2)),
      tool("Last steps", () => move(start.from, start.to)), tool("All", () => move(first, last))),
    picture, legend(["python", ...kinds.filter((kind) => kind !== "python")].map((kind) => [color(kind), kindNames[kind] || kind])));
}

// --- Charts ---

function frame(width, height, label) {
  return drawing("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

function axes(picture, box, [x0, x1], top, textX, textY, base = 10) {
  const x = (v) => box.left + (v - x0) / (x1 - x0 || 1) * (box.right - box.left);
  const y = (v) => box.bottom - v / (top || 1) * (box.bottom - box.top);
  for (const v of ticks(0, top || 1, 4, base)) {
    picture.append(drawing("line", { x1: box.left, x2: box.right, y1: y(v), y2: y(v), class: "axis" }),
      drawing("text", { x: box.left - 8, y: y(v) + 4, "text-anchor": "end" }, textY(v)));
  }
  for (const v of ticks(x0, x1 > x0 ? x1 : x0 + 1, 8)) {
    picture.append(drawing("text", { x: x(v), y: box.bottom + 18, "text-anchor": "middle" }, textX(v)));
  }
  return [x, y];
}

function drawCompilations() {
  const list = data.compilations;
  if (list.length === 0) return;
  const picture = frame(1080, 220, "Compilations over time");
  const box = { left: 70, right: 1065, top: 14, bottom: 190 };
  const [x, y] = axes(picture, box, [0, Math.max(...list.map((c) => c.start + c.seconds))], Math.max(...list.map((c) => c.seconds)), time, time);
  for (const c of list) {
    const shade = c.change ? "var(--compile)" : "var(--other)";
    const text = `${c.change || "the first program"}\n${time(c.seconds)}, step ${c.step}\n${c.cause}`;
    picture.append(drawing("line", { x1: x(c.start), x2: x(c.start), y1: box.bottom, y2: y(c.seconds), stroke: shade, "stroke-width": 2 }),
      drawing("circle", { cx: x(c.start), cy: y(c.seconds), r: 5, fill: shade, tip: text }));
  }
  section("compilations", "Compilations", "When programs were compiled, how long that took, and what was different from the nearest program before.",
    picture, table([["at", "number"], ["step", "number"], ["took", "number"], ["operators", "number"], ["what changed"], ["asked for by"]],
      list.map((c) => [time(c.start), c.step < 0 ? "–" : String(c.step), time(c.seconds), String(c.operators), c.change || "the first program",
        c.cause + (c.asked_at ? `, ${c.asked_at}` : "")])));
}

function drawMemory() {
  const { lines, samples } = data.memorySeries;
  if (samples.length === 0) return;
  const picture = frame(1080, 280, "Memory over time");
  const box = { left: 86, right: 1065, top: 14, bottom: 250 };
  const sums = samples.map((sample) => sample.slice(1).reduce((a, b) => a + b, 0));
  const [x, y] = axes(picture, box, [samples[0][0], samples[samples.length - 1][0]], Math.max(...sums), time, bytes, 1024);
  const base = samples.map(() => 0);
  lines.forEach((line, i) => {
    const values = samples.map((sample) => sample[i + 1]);
    if (Math.max(...values) === 0) return;
    const upper = values.map((value, k) => base[k] + value);
    const point = (k, value) => `${x(samples[k][0]).toFixed(1)},${y(value).toFixed(1)}`;
    // What is held stays so until the next program starts.
    const up = [], down = [];
    for (let k = 0; k < samples.length; k += 1) {
      const next = Math.min(k + 1, samples.length - 1);
      up.push(point(k, upper[k]), `${x(samples[next][0]).toFixed(1)},${y(upper[k]).toFixed(1)}`);
      down.unshift(`${x(samples[next][0]).toFixed(1)},${y(base[k]).toFixed(1)}`, point(k, base[k]));
    }
    const most = `${line}\nat most ${bytes(Math.max(...values))}`;
    picture.append(drawing("polygon", { points: [...up, ...down.reverse().reverse()].join(" "), fill: shade(i), tip: most }));
    upper.forEach((value, k) => { base[k] = value; });
  });
  function shade(i) { return i === lines.length - 1 ? "var(--s8)" : `var(--s${Math.min(i, 7)})`; }
  const used = lines.map((line, i) => [shade(i), line, Math.max(...samples.map((sample) => sample[i + 1]))]).filter(([, , most]) => most > 0);
  const held = data.memory.holdings;
  section("memory", "Memory", "What the program's tensors held, by the line that made them, whenever a program started, and what that program needed besides.",
    picture, legend(used.map(([fill, line]) => [fill, line])),
    element("p", { class: "faint", style: "margin-top:14px" }, `At the peak, ${bytes(data.memory.peak_bytes)}, of which the program needed ${bytes(data.memory.program_bytes)} for results and intermediate values:`),
    table([["bytes", "number"], ["tensors", "number"], ["shape"], ["made by"], ["line"]],
      held.map((h) => [bytes(h.bytes), String(h.count), element("code", {}, h.shape), h.made_by || "the host", h.place ? element("span", {}, h.place + "  ", element("code", { class: "faint" }, h.code)) : "–"])));
}

function drawInput() {
  const series = data.inputSeries;
  if (!series.some(([, , wait]) => wait > 0)) return;
  const picture = frame(1080, 190, "Waiting for batches in each step");
  const box = { left: 70, right: 1065, top: 14, bottom: 160 };
  const [x, y] = axes(picture, box, [series[0][0], series[series.length - 1][0] + 1], Math.max(...series.map(([, seconds]) => seconds)), (v) => v.toFixed(0), time);
  const width = Math.max((box.right - box.left) / series.length - 1, 1);
  for (const [index, seconds, wait] of series) {
    const text = `step ${index}: ${time(seconds)}\n${time(wait)} waiting for batches`;
    picture.append(drawing("rect", { x: x(index), width, y: y(seconds), height: box.bottom - y(seconds), fill: "var(--doctor)", tip: text }),
      drawing("rect", { x: x(index), width, y: y(wait), height: box.bottom - y(wait), fill: "var(--input)", tip: text }));
  }
  section("input", "Input", "How long each step waited for its batch.", picture,
    legend([["var(--doctor)", "the step"], ["var(--input)", "waiting for batches"]]),
    ...data.loaders.map((loader) => element("p", { class: "faint" },
      `${loader.description}: ${loader.workers} worker processes` + (loader.item ? `, items are made at ${loader.item}` : ""))));
}

function drawKernels() {
  const kernels = data.kernels;
  if (kernels.length === 0) return;
  const total = kernels.reduce((sum, kernel) => sum + kernel.seconds, 0);
  const known = kernels.some((kernel) => kernel.roofline !== null);
  const peaks = data.peaks ? ` This machine does at most ${(data.peaks.flops / 1e9).toFixed(0)} GFLOP/s and ${(data.peaks.bytes / 1e9).toFixed(1)} GB/s ` +
    "(measured after the program, in float32). The share of the roofline is the least time that a kernel's work could take, of the time that it took; what caches hold comes faster than memory gives it." : "";
  const rows = kernels.map((kernel) => [
    time(kernel.seconds), percent(kernel.seconds / total), kernel.count >= 10 ? kernel.count.toFixed(0) : String(+kernel.count.toFixed(1)),
    element("span", { tip: kernel.text, style: "white-space:nowrap" }, element("code", {}, kernel.name), element("span", { class: "faint" }, ` ${kernel.category}`)),
    kernel.operation,
    kernel.place ? element("span", {}, kernel.place + " ", element("code", { class: "faint" }, kernel.code)) : "–",
    kernel.roofline === null ? "–" : element("span", { style: "white-space:nowrap", tip: kernelText(kernel) },
      element("span", { class: "share" }, element("div", { style: `width:${kernel.roofline * 100}%` })), `${percent(kernel.roofline)} ${kernel.bound}`),
  ]);
  section("kernels", "Kernels", "What the device computed, the longest first, and the line that it was recorded at." + peaks,
    ...(known ? [drawRoofline(kernels)] : []),
    table([["a step", "number"], ["share", "number"], ["runs", "number"], ["kernel"], ["operator"], ["line"], ["of the roofline"]], rows));
}

function kernelText(kernel) {
  const each = kernel.seconds / kernel.count;
  return `${kernel.name}\n${(kernel.flops / each / 1e9).toFixed(1)} GFLOP/s, ${(kernel.bytes / each / 1e9).toFixed(1)} GB/s\n` +
    `${percent(kernel.roofline)} of what ${kernel.bound} allows`;
}

// Operations a second over operations a byte, both on logarithmic scales; as large as the time that a kernel takes.
function drawRoofline(kernels) {
  const { flops, bytes: moved } = data.peaks;
  const shown = kernels.filter((k) => k.roofline !== null && k.flops > 0 && k.bytes > 0)
    .map((k) => ({ kernel: k, intensity: k.flops / k.bytes, rate: k.flops * k.count / k.seconds }));
  if (shown.length === 0) return element("span");
  const picture = frame(1080, 270, "Roofline");
  const box = { left: 112, right: 1060, top: 12, bottom: 228 };
  const ridge = flops / moved;
  const log = Math.log10;
  const [x0, x1] = [Math.floor(log(Math.min(ridge / 10, ...shown.map((s) => s.intensity)))), Math.ceil(log(Math.max(ridge * 10, ...shown.map((s) => s.intensity))))];
  const [y0, y1] = [Math.floor(log(Math.min(flops / 1e3, ...shown.map((s) => s.rate)))), Math.ceil(log(flops))];
  const x = (v) => box.left + (log(v) - x0) / (x1 - x0) * (box.right - box.left);
  const y = (v) => box.bottom - (log(v) - y0) / (y1 - y0) * (box.bottom - box.top);
  for (let n = y0; n <= y1; n += 1) {
    picture.append(drawing("line", { x1: box.left, x2: box.right, y1: y(10 ** n), y2: y(10 ** n), class: "axis" }),
      drawing("text", { x: box.left - 8, y: y(10 ** n) + 4, "text-anchor": "end" }, `${+(10 ** (n - 9)).toPrecision(1)} GFLOP/s`));
  }
  for (let n = x0; n <= x1; n += 1) picture.append(drawing("text", { x: x(10 ** n), y: box.bottom + 18, "text-anchor": "middle" }, String(+(10 ** n).toPrecision(1))));
  picture.append(drawing("text", { x: box.right, y: box.bottom + 36, "text-anchor": "end" }, "operations for each byte"));
  const corner = Math.max(10 ** y0 / moved, 10 ** x0);
  picture.append(drawing("polyline", { points: `${x(corner)},${y(corner * moved)} ${x(ridge)},${y(flops)} ${box.right},${y(flops)}`,
    fill: "none", stroke: "var(--text)", "stroke-width": 1.5 }));
  const longest = Math.max(...shown.map((s) => s.kernel.seconds));
  for (const { kernel, intensity, rate } of shown) {
    picture.append(drawing("circle", { cx: x(intensity), cy: y(rate), r: 3 + 11 * Math.sqrt(kernel.seconds / longest),
      fill: kernel.bound === "compute" ? "var(--s0)" : "var(--s1)", "fill-opacity": 0.7, tip: `${kernelText(kernel)}\n${time(kernel.seconds)} a step\n${kernel.place || ""}` }));
  }
  return element("div", {}, picture, legend([["var(--s0)", "bound by computing"], ["var(--s1)", "bound by memory"]]));
}

drawHead();
drawStep();
drawCauses();
drawTimeline();
drawCompilations();
drawMemory();
drawKernels();
drawInput();
if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
document.documentElement.dataset.drawn = "yes";
