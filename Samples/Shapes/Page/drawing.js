// The drawing: shows what the replica holds, and turns what people do into changes of it.

import { Replica } from "./replica.js";
import { Session } from "./session.js";

const WIDTH = 1200;
const HEIGHT = 700;
const SMALLEST = 30;
const ROUNDEST = 34;
const COLOURS = [
  ["coral", 0xff6f61ff], ["tangerine", 0xff9640ff], ["sun", 0xffc145ff], ["leaf", 0x6cc24aff],
  ["teal", 0x1fb8a6ff], ["sky", 0x3d9bffff], ["grape", 0x8e6cffff], ["rose", 0xf25ca2ff],
];

const $ = (id) => document.getElementById(id);
const drawing = $("drawing");
const frame = document.querySelector("#selection .frame");
const handle = document.querySelector("#selection .handle");
const elements = new Map();

let selected = null;
let colour = COLOURS[4][1];
let held = null; // what the pointer drags: { uuid, id, isResize, x, y, from }
let isDrawn = false;
let noticeTimer = null;

const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/`;
const session = new Session(address, {
  status: showStatus,
  begin: () => replica.fetch(),
  message: (message) => replica.receive(message),
  turn: () => replica.sendSoon(),
});
const names = { scope: "Canvas", root: "Canvas", list: "shapes", model: "Shape" };
const replica = new Replica(session, names, (refused) => {
  if (refused.length > 0) notify(`The server did not accept this: ${refused[0]}`);
  if (isDrawn) return;
  isDrawn = true;
  requestAnimationFrame(draw);
});

// Showing

function draw() {
  isDrawn = false;
  const view = replica.visible();
  if (!view) return;
  const known = new Set(view.list);
  for (const [uuid, element] of elements) {
    if (known.has(uuid)) continue;
    element.remove();
    elements.delete(uuid);
    if (held?.uuid === uuid) held = null;
  }
  if (!known.has(selected)) selected = null;
  let previous = null;
  view.list.forEach((uuid, position) => {
    const element = elements.get(uuid) ?? makeElement(uuid);
    drawShape(element, view.models.get(uuid), position, view.list.length);
    // Moving an element within the document would let go of the pointer, so only where it has to be.
    if (!element.isConnected || element.previousElementSibling !== previous) {
      if (previous) previous.after(element);
      else $("shapes").prepend(element);
    }
    previous = element;
  });
  drawSelection(selected && view.models.get(selected));
  drawPanel(view);
}

function makeElement(uuid) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  element.setAttribute("class", "shape arriving");
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.dataset.uuid = uuid;
  element.addEventListener("animationend", () => element.classList.remove("arriving"));
  element.addEventListener("focus", () => select(uuid));
  elements.set(uuid, element);
  return element;
}

function drawShape(element, shape, position, count) {
  const { x, y, width, height } = sizes(shape);
  element.style.transform = `translate(${x}px, ${y}px)`;
  element.style.fill = css(shape.color ?? 0xff);
  element.setAttribute("width", width);
  element.setAttribute("height", height);
  element.setAttribute("rx", corner(width, height));
  element.setAttribute("aria-pressed", String(element.dataset.uuid === selected));
  element.setAttribute("aria-label",
    `Shape ${position + 1} of ${count}, ${colourName(shape.color)}, `
      + `at ${Math.round(x)}, ${Math.round(y)}`);
  element.classList.toggle("held", element.dataset.uuid === held?.uuid);
}

function drawSelection(shape) {
  $("selection").toggleAttribute("hidden", !shape);
  $("selection").classList.toggle("held", held != null);
  if (!shape) return;
  const { x, y, width, height } = sizes(shape);
  const radius = corner(width, height) + 5;
  $("selection").style.transform = `translate(${x}px, ${y}px)`;
  const box = { x: -5, y: -5, width: width + 10, height: height + 10, rx: radius };
  for (const [key, value] of Object.entries(box)) frame.setAttribute(key, value);
  handle.setAttribute("cx", width + 2);
  handle.setAttribute("cy", height + 2);
  // Big enough to be touched, however small the drawing is shown.
  handle.setAttribute("r", Math.max(9, 9 / drawing.getScreenCTM().a));
}

function drawPanel(view) {
  const name = view.properties.name ?? "";
  if ($("name").value !== name) $("name").value = name;
  document.title = name ? `${name} - Shapes` : "Shapes";
  const count = view.list.length;
  $("count").textContent = count === 1 ? "1 shape" : `${count} shapes`;
  for (const id of ["name", "add"]) $(id).disabled = false;
  $("delete").disabled = !selected;
  const shown = selected ? view.models.get(selected).color : colour;
  for (const input of document.querySelectorAll("#palette input")) {
    input.checked = Number(input.value) === shown;
  }
}

function showStatus(status, why) {
  $("status").dataset.status = status;
  $("status").lastElementChild.textContent = status;
  $("status").title = why ?? "";
  if (status !== "denied") return;
  // Nothing that is changed from here on would reach the server.
  for (const part of document.querySelectorAll("header, main, #toolbar")) part.inert = true;
  notify(`The server does not let this page in: ${why}`, true);
}

function notify(text, stays) {
  clearTimeout(noticeTimer);
  $("notice").textContent = text;
  $("notice").hidden = false;
  if (!stays) noticeTimer = setTimeout(() => { $("notice").hidden = true; }, 4_000);
}

/** A coordinate that the server has written with fewer digits is the same 32-bit number. */
const sizes = ({ x, y, width, height }) => ({
  x: Math.fround(x ?? 0),
  y: Math.fround(y ?? 0),
  width: Math.max(Math.fround(width ?? 0), 1),
  height: Math.max(Math.fround(height ?? 0), 1),
});
const corner = (width, height) => Math.min(Math.min(width, height) * 0.2, ROUNDEST);
const css = (rgba) => `#${(rgba >>> 0).toString(16).padStart(8, "0")}`;
const colourName = (rgba) => COLOURS.find((entry) => entry[1] === rgba)?.[0] ?? css(rgba ?? 0);

// Changing

function select(uuid) {
  if (selected === uuid) return;
  selected = uuid;
  replica.onChange([]);
}

function addShape() {
  const size = 110 + Math.round(Math.random() * 70);
  const uuid = makeUUID();
  const x = Math.round(120 + Math.random() * (WIDTH - 240 - size));
  const y = Math.round(80 + Math.random() * (HEIGHT - 230 - size));
  selected = uuid;
  replica.add(uuid, { x, y, width: size, height: size, color: colour });
}

function removeShape() {
  if (!selected) return;
  const uuid = selected;
  selected = null;
  replica.remove(uuid);
}

function shapeNow(uuid) {
  const shape = replica.visible()?.models.get(uuid);
  return shape && sizes(shape);
}

/** The server keeps coordinates with 32 bits; sending them so, nobody has to round. */
function move(uuid, x, y) {
  const { width, height } = shapeNow(uuid);
  const within = (value, size, limit) => Math.min(Math.max(value, 20 - size), limit - 20);
  const place = { x: within(x, width, WIDTH), y: within(y, height, HEIGHT) };
  replica.change(uuid, { x: Math.fround(place.x), y: Math.fround(place.y) });
}

/** The Web's own maker of UUIDs is missing on pages that come over plain HTTP from elsewhere. */
function makeUUID() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

// Pointer and keys

function pointIn(event) {
  const point = new DOMPoint(event.clientX, event.clientY);
  return point.matrixTransform(drawing.getScreenCTM().inverse());
}

drawing.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || held) return;
  const isResize = event.target === handle;
  const uuid = isResize ? selected : event.target.dataset?.uuid;
  select(uuid ?? null);
  const from = uuid && shapeNow(uuid);
  if (!from) return document.activeElement?.blur();
  const { x, y } = pointIn(event);
  held = { uuid, id: event.pointerId, isResize, x, y, from };
  drawing.setPointerCapture(event.pointerId);
});

drawing.addEventListener("pointermove", (event) => {
  if (event.pointerId !== held?.id || !shapeNow(held.uuid)) return;
  const { x, y } = pointIn(event);
  const { uuid, from, isResize } = held;
  const [dx, dy] = [x - held.x, y - held.y];
  if (!isResize) return move(uuid, from.x + dx, from.y + dy);
  const size = (value) => Math.fround(Math.max(value, SMALLEST));
  replica.change(uuid, { width: size(from.width + dx), height: size(from.height + dy) });
});

for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) {
  drawing.addEventListener(type, (event) => {
    if (event.pointerId !== held?.id) return;
    held = null;
    replica.onChange([]);
  });
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

document.addEventListener("keydown", (event) => {
  if (event.target instanceof HTMLInputElement && event.target.type === "text") {
    if (event.key === "Enter" || event.key === "Escape") event.target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || session.isDenied) return;
  const step = STEPS[event.key];
  if (event.key === "Delete" || event.key === "Backspace") {
    removeShape();
  } else if (event.key === "Escape") {
    select(null);
    document.activeElement?.blur();
  } else if (event.key.toLowerCase() === "a" && !$("add").disabled) {
    addShape();
  } else if (step && selected && !(event.target instanceof HTMLInputElement)) {
    const { x, y } = shapeNow(selected);
    const length = event.shiftKey ? 1 : 10;
    move(selected, x + step[0] * length, y + step[1] * length);
  } else {
    return;
  }
  event.preventDefault();
});

// Toolbar

$("add").addEventListener("click", addShape);
$("delete").addEventListener("click", removeShape);
$("name").addEventListener("input", () => {
  replica.change(null, { name: $("name").value || null });
});

for (const [name, value] of COLOURS) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  Object.assign(input, { type: "radio", name: "colour", value, ariaLabel: name });
  const swatch = document.createElement("span");
  swatch.style.setProperty("--swatch", css(value));
  label.title = name;
  label.append(input, swatch);
  input.addEventListener("change", () => {
    colour = value;
    if (selected) replica.change(selected, { color: value });
    else replica.onChange([]);
  });
  // After a choice by pointer the keys are for the shape; by keyboard, for the next choice.
  label.addEventListener("click", (event) => {
    if (event.detail > 0) setTimeout(() => elements.get(selected)?.focus());
  });
  $("palette").append(label);
}

session.open();
