const data = JSON.parse(document.getElementById("data").textContent);
const shot = document.getElementById("shot");
const find = document.getElementById("find");
const body = document.querySelector("#cards tbody");
const card = document.getElementById("card");
let picked = null;

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

function cell(label, value, content) {
  const made = make("td", {}, content);
  made.dataset.label = label;
  made.dataset.value = value;
  if (label !== data.noun) made.className = "number";
  return made;
}

function called(task) {
  return task.id.toLowerCase().startsWith(data.noun.toLowerCase()) ? task.id : `${data.noun} ${task.id}`;
}

function known(count) {
  return Number(count) === 0 ? "no rows known" : `${count} ${Number(count) === 1 ? "row" : "rows"} known`;
}

function matches(task) {
  const text = [task.id, ...Object.entries(task.side).flat()].join(" ").toLowerCase();
  return text.includes(find.value.trim().toLowerCase());
}

function list() {
  const rows = data.tasks.filter((task) => task.shots[shot.value] && matches(task));
  rows.sort((one, other) => other.shots[shot.value].error - one.shots[shot.value].error);
  picked ??= rows[0] ?? data.tasks[0];
  body.replaceChildren(...rows.map((task) => {
    const pick = make("button", { type: "button", className: "pick" }, task.id);
    pick.setAttribute("aria-pressed", String(task === picked));
    pick.addEventListener("click", () => {
      picked = task;
      show();
      for (const other of body.querySelectorAll(".pick")) {
        other.setAttribute("aria-pressed", String(other === pick));
      }
      card.scrollIntoView({ block: "nearest" });
    });
    const error = task.shots[shot.value].error;
    return make("tr", {}, cell(data.noun, task.id, pick), cell("rows", task.n, String(task.n)),
      cell(`mean ${data.criterion}`, error, error.toPrecision(4)));
  }));
  for (const head of document.querySelectorAll("#cards th")) head.removeAttribute("aria-sort");
  document.getElementById("count").textContent = `${rows.length} of ${data.tasks.length} shown`;
}

const NS = "http://www.w3.org/2000/svg";
function draw(tag, attributes, text) {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function ticks(low, high) {
  const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}

function picture(task) {
  // Prediction against the true value: hollow with the fewest rows known, filled with these.
  const now = task.shots[shot.value], first = task.shots[data.shots[0]] ?? now;
  const start = new Map(first.row.map((row, i) => [row, first.predicted[i]]));
  const points = now.row.map((row, i) => ({
    y: data.classes ? (now.y[i] > 0 ? 1 : 0) : now.y[i], predicted: now.predicted[i],
    before: start.get(row) ?? now.predicted[i],
  }));
  const reach = now.width ?? 0;
  const seen = points.flatMap((p) => [p.y, p.predicted - reach, p.predicted + reach, p.before]);
  let low = data.classes ? 0 : Math.min(...seen), high = data.classes ? 1 : Math.max(...seen);
  if (low === high) { low -= 1; high += 1; }
  const pad = 0.05 * (high - low);
  low -= pad; high += pad;
  const W = 420, H = 320, left = 56, right = 12, top = 12, bottom = 44;
  const x = (v) => left + (v - low) / (high - low) * (W - left - right);
  const y = (v) => H - bottom - (v - low) / (high - low) * (H - top - bottom);
  const what = data.classes ? `probability of ${data.positive}` : "prediction";
  const words = `${called(task)}, ${known(shot.value)}: ${what} against the true value of `
    + `${points.length} other rows; mean ${data.criterion} ${now.error.toPrecision(4)}.`;
  const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": words });
  svg.append(draw("line", { x1: left, y1: H - bottom, x2: W - right, y2: H - bottom, class: "axis" }),
    draw("line", { x1: left, y1: top, x2: left, y2: H - bottom, class: "axis" }));
  if (!data.classes) {
    svg.append(draw("line", { x1: x(low), y1: y(low), x2: x(high), y2: y(high), class: "diagonal" }));
  }
  for (const v of ticks(low, high)) {
    const text = String(Number(v.toPrecision(6)));
    svg.append(draw("text", { x: x(v), y: H - bottom + 16, "text-anchor": "middle" }, text),
      draw("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, text));
  }
  svg.append(draw("text", { x: (left + W) / 2, y: H - 8, "text-anchor": "middle" },
    data.classes ? `true value (1: ${data.positive})` : "true value"),
    draw("text", { x: -(H - bottom) / 2, y: 12, transform: "rotate(-90)", "text-anchor": "middle" }, what));
  for (const p of points) {
    if (now.width !== null) {
      svg.append(draw("line", { x1: x(p.y), y1: y(p.predicted - reach), x2: x(p.y), y2: y(p.predicted + reach), class: "reach" }));
    }
    svg.append(draw("circle", { cx: x(p.y), cy: y(p.before), r: 3.5, class: "before" }),
      draw("circle", { cx: x(p.y), cy: y(p.predicted), r: 4, class: "after" }));
  }
  return svg;
}

function show() {
  const now = picked.shots[shot.value];
  card.replaceChildren(make("h3", {}, called(picked)));
  const facts = make("dl");
  const entries = [...Object.entries(picked.side), ["rows", String(picked.n)]];
  for (const [name, value] of entries) facts.append(make("dt", {}, name), make("dd", {}, value));
  const left = make("div", {}, facts);
  if (picked.coef.length) {
    const rows = picked.coef.map(([name, prior, adapted]) => make("tr", {},
      cell("coefficient", name, name), cell("prior", prior, String(prior)),
      cell("adapted", adapted, String(adapted))));
    for (const row of rows) row.cells[0].className = "";
    const heads = ["coefficient", "prior", "adapted"].map((name, i) =>
      make("th", { scope: "col", className: i ? "number" : "" }, name));
    left.append(make("table", { className: "compact" },
      make("caption", {}, `Coefficients of “${data.coef_learner}” before (prior) and after (adapted) all its rows are known`),
      make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
  }
  const right = make("figure");
  if (now) {
    const kind = now.width === null || now.width === undefined ? ""
      : ` Bars contain the true value of 9 in 10 rows of a new ${data.noun}.`;
    const hollow = Number(shot.value) === data.shots[0] ? "" : ` (filled) and with ${known(data.shots[0])} (hollow)`;
    right.append(picture(picked), make("figcaption", {},
      `Predictions with ${known(shot.value)}${hollow}.${kind}`));
  } else {
    right.append(make("figcaption", {}, `It has no row left to predict with ${known(shot.value)}.`));
  }
  card.append(make("div", { className: "pictures" }, left, right));
}

function save() {
  const quote = (value) => `"${String(value).replaceAll('"', '""')}"`;
  const lines = data.tasks.flatMap((task) => Object.entries(task.shots).map(([points, one]) =>
    [quote(task.id), task.n, points, one.error].join(",")));
  const text = [`${data.noun},rows,known,error`, ...lines].join("\n") + "\n";
  document.getElementById("save").href = "data:text/csv;charset=utf-8," + encodeURIComponent(text);
}

shot.selectedIndex = data.first_shown;
shot.addEventListener("change", () => { list(); show(); });
find.addEventListener("input", list);
list();
show();
save();
