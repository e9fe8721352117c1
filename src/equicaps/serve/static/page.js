// The tab of images, and the start of the page. The server rotates the picture and runs the networks; nothing is cached.
import { fillRows, makeRows, percent, probabilities } from "/bars.js";
import { drawCompass, drawLayer, drawPixels, drawPose, drawTrace, drawWedge, pen, raster } from "/canvas.js";
import { complaining, latest, post, send, upload } from "/server.js";
import { shapesTab } from "/shapes.js";
import { offerTabs } from "/tabs.js";

const at = (id) => document.getElementById(id);
const signed = (degrees) => `${degrees > 0 ? "+" : degrees < 0 ? "−" : ""}${Math.abs(degrees).toFixed(1)}°`;
const wrapped = (degrees) => 180 - ((((180 - degrees) % 360) + 360) % 360); // in (-180, 180]

let about; // the description of the models
let model; // the description of the chosen one
let pixels = null; // the picture before it is rotated
let name = null; // its true class, if known
let upright = null; // the chosen model's reply at 0 degrees
let reply = null; // its latest reply
let degrees = 0;
let poseDegrees = 0;
let trace = new Map();
let drawing = false;
let tour = 0; // number of the current full circle; changing it stops the circle

// --- the server

const answered = (question) => post("/api/answer", question);

async function askOnce() {
  const question = { model: model.name, pixels, degrees, pose_degrees: poseDegrees };
  const found = await answered(question);
  const first = question.degrees === 0 ? found : upright ?? (await answered({ ...question, degrees: 0 }));
  if (question.pixels !== pixels || question.model !== model.name) return; // another was chosen in the meantime
  [reply, upright] = [found, first];
  remember(0, upright);
  remember(question.degrees, reply);
  show(question.degrees);
}

function forget() {
  reply = upright = null;
  trace = new Map();
}

const complain = complaining(at("problem"));
const ask = latest(askOnce, complain);

// --- display

const followed = () => name ?? upright.capsules.label;

function remember(angle, { capsules, plain }) {
  const place = about.classes.indexOf(followed());
  trace.set(angle, [probabilities(capsules, about.classes)[place], plain && probabilities(plain, about.classes)[place]]);
}

function show(angle) {
  const { capsules, plain } = reply;
  if (!drawing) showPicture();
  fillRows(at("capsule-bars"), about.classes, capsules);
  at("label").textContent = capsules.label;
  at("confidence").textContent = percent(capsules.confidence);
  const within = capsules.angle_error === null ? "" : ` ± ${capsules.angle_error.toFixed(0)}°`;
  const known = capsules.period === 360 ? "" : ` mod ${capsules.period}°`;
  at("angle").textContent = capsules.angle === null ? "none" : signed(capsules.angle) + within + known;
  at("angle").dataset.degrees = capsules.angle;
  drawCompass(at("compass"), capsules.angle);
  showChange(angle);
  if (plain) {
    fillRows(at("plain-bars"), about.classes, plain);
    at("plain-label").textContent = plain.label;
    at("plain-confidence").textContent = percent(plain.confidence);
    at("plain-change").textContent = plain.label !== upright.plain.label ? `was “${upright.plain.label}” at 0°` : "";
  }
  at("traced").textContent = followed();
  const points = [...trace].map(([where, values]) => [where, ...values]).sort((a, b) => a[0] - b[0]);
  drawTrace(at("trace"), points, angle);
  [...at("layers").children].forEach((figure, k) => {
    const layer = reply.layers[k];
    drawLayer(figure.querySelector("canvas"), layer, reply.image, about.side);
    const which = layer.shown === null ? `all ${layer.capsules} capsules` : `1 of ${layer.capsules} capsules`;
    figure.querySelector("figcaption").textContent = `Layer ${k + 1}: ${which}, ${layer.side}×${layer.side}`;
  });
  if (reply.reconstruction) drawPixels(at("reconstruction"), reply.reconstruction, model.reconstruction_side);
  at("cost").textContent = `This answer took ${reply.cpu_milliseconds.toFixed(0)} ms of CPU time.`;
  Object.assign(document.body.dataset, { model: model.name, degrees: angle, poseDegrees });
}

function showPicture() {
  const { context, width, height } = drawPixels(at("picture"), reply.image, about.side);
  if (reply.capsules.angle === null) return;
  context.strokeStyle = context.fillStyle = "#ff5a43";
  context.shadowColor = "#000";
  context.shadowBlur = 6;
  const { angle, angle_error: error, period } = reply.capsules;
  for (let towards = angle; towards < angle + 360; towards += period || 360) {
    if (error !== null) drawWedge(context, width / 2, height / 2, 0.42 * width, towards, error);
    drawPose(context, width / 2, height / 2, 0.42 * width, towards, 6);
  }
}

function showChange(angle) {
  const badge = at("change");
  if (angle === 0) {
    badge.textContent = "";
    return;
  }
  const change = Math.max(...["scores", "agreements"].flatMap((kind) =>
    about.classes.map((each) => Math.abs(reply.capsules[kind][each] - upright.capsules[kind][each]))));
  const exact = angle % 90 === 0;
  const size = change >= 0.01 ? change.toFixed(2) : change ? change.toExponential(0) : "0";
  badge.textContent = `${exact ? "quarter turn" : "in between"}: largest change ${size}`;
  badge.title = "largest change of a score or an agreement from its value at 0°";
  badge.classList.toggle("calm", !exact);
}

// --- rotation

function rotateTo(target) {
  degrees = wrapped(Math.round(target));
  if (degrees === 180 && target < 0) degrees = -180; // the same picture at the other end of the slider
  at("degrees").value = degrees;
  at("degrees-out").textContent = `${degrees}°`;
  if (pixels) return ask();
}

function byUser(target) {
  tour += 1;
  setDrawing(false);
  rotateTo(target);
}

async function fullCircle() {
  const mine = (tour += 1);
  setDrawing(false);
  for (let step = -180; step <= 180 && mine === tour; step += 5) await rotateTo(step);
  if (mine === tour) await rotateTo(0);
}

function pointerAngle(event) {
  const box = at("picture").getBoundingClientRect();
  const [x, y] = [event.clientX - box.left - box.width / 2, box.top + box.height / 2 - event.clientY];
  return (Math.atan2(y, x) * 180) / Math.PI;
}

function dragToRotate() {
  const picture = at("picture");
  let grip = null; // the angle of the picture minus the angle of the pointer
  picture.addEventListener("pointerdown", (event) => {
    if (drawing) return;
    picture.setPointerCapture(event.pointerId);
    grip = degrees - pointerAngle(event);
  });
  picture.addEventListener("pointermove", (event) => grip !== null && !drawing && byUser(grip + pointerAngle(event)));
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => (grip = null));
  picture.addEventListener("keydown", (event) => {
    const sign = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!sign) return;
    event.preventDefault();
    byUser(degrees + sign * (event.shiftKey ? 90 : 5));
  });
}

// --- pictures

function setPicture(picture, label = null) {
  pixels = picture;
  name = label;
  forget();
  at("problem").hidden = true;
  tour += 1;
  return rotateTo(0);
}

function press(button) {
  for (const each of at("digits").children) each.setAttribute("aria-pressed", each === button);
}

async function readImage(file, centre) {
  try {
    const picture = await upload(`/api/picture?centre=${centre}`, file, file.type || "application/octet-stream");
    press(null);
    return setPicture(picture.pixels);
  } catch (error) {
    complain(error);
  }
}

const sheet = document.createElement("canvas"); // the drawing, white on black
sheet.width = sheet.height = 280;

function setDrawing(on) {
  if (on === drawing) return;
  drawing = on;
  at("mode-draw").setAttribute("aria-pressed", on);
  at("mode-rotate").setAttribute("aria-pressed", !on);
  at("picture").classList.toggle("drawing", on);
  at("keys").textContent = on ? "Draw with the mouse or a finger, then switch to Rotate." : "Drag, or press ← → (5°; with Shift 90°).";
  at("clear").hidden = !on;
  if (on) {
    tour += 1;
    clear();
  } else if (reply) {
    showPicture();
  }
}

function clear() {
  sheet.getContext("2d").fillRect(0, 0, sheet.width, sheet.height);
  showSheet();
}

function showSheet() {
  const { context, width, height } = pen(at("picture"));
  context.drawImage(sheet, 0, 0, width, height);
}

function draw() {
  const [picture, ink] = [at("picture"), sheet.getContext("2d")];
  let last = null;
  let sent = Promise.resolve();
  const place = (event) => {
    const box = picture.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * sheet.width, ((event.clientY - box.top) / box.height) * sheet.height];
  };
  const line = (from, to) => {
    ink.strokeStyle = "#fff";
    ink.lineWidth = 22;
    ink.lineCap = ink.lineJoin = "round";
    ink.beginPath();
    ink.moveTo(...from);
    ink.lineTo(...to);
    ink.stroke();
    showSheet();
  };
  picture.addEventListener("pointerdown", (event) => {
    if (!drawing) return;
    picture.setPointerCapture(event.pointerId);
    last = place(event);
    line(last, last);
  });
  picture.addEventListener("pointermove", (event) => {
    if (!drawing || !last) return;
    const next = place(event);
    line(last, next);
    last = next;
  });
  for (const end of ["pointerup", "pointercancel"]) {
    picture.addEventListener(end, () => {
      if (!drawing || !last) return;
      last = null;
      sheet.toBlob((blob) => (sent = sent.then(() => readImage(blob, about.digits))), "image/png");
    });
  }
}

// --- start

function layerFigures(count) {
  at("layers").replaceChildren();
  for (let k = 0; k < count; k += 1) {
    const figure = document.createElement("figure");
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Poses of layer ${k + 1}`);
    figure.append(canvas, document.createElement("figcaption"));
    at("layers").append(figure);
  }
}

const describe = () => (at("model").textContent = `model ${model.name}: ${model.task}`);

// Everything on the tab that depends on the model but not on its reply; then asks it about the picture.
function choose(chosen) {
  model = chosen;
  forget();
  tour += 1;
  describe();
  at("decoded").hidden = model.reconstruction_side === null;
  at("board").classList.toggle("undecoded", model.reconstruction_side === null);
  layerFigures(model.layers);
  at("inside").hidden = !model.layers;
  if (pixels) ask();
}

function offerModels() {
  at("models").hidden = about.models.length < 2;
  for (const each of about.models) {
    const [label, radio] = [document.createElement("label"), document.createElement("input")];
    Object.assign(radio, { type: "radio", name: "model", value: each.name, checked: each === about.models[0] });
    radio.addEventListener("change", () => choose(each));
    label.append(radio, each.label);
    at("models").append(label);
  }
  choose(about.models[0]);
}

async function offerDigits() {
  const digits = await send("/api/digits");
  const columns = about.classes.length;
  const each = digits.length / columns;
  for (let k = 0; k < digits.length; k += 1) {
    const digit = digits[(k % columns) * each + Math.floor(k / columns)]; // the server sorts by class, the page shows one of each per row
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-label", `digit ${digit.label}`);
    button.setAttribute("aria-pressed", "false");
    button.append(raster(digit.pixels, about.side));
    button.addEventListener("click", () => {
      setDrawing(false);
      press(button);
      setPicture(digit.pixels, digit.label);
    });
    at("digits").append(button);
  }
  return at("digits").children;
}

async function startImages() {
  at("plain").hidden = !about.plain;
  at("board").classList.toggle("alone", !about.plain);
  document.querySelector(".plain-key").hidden = !about.plain;
  at("centre-label").hidden = at("pick-title").hidden = !about.digits;
  at("centre").checked = about.digits;
  makeRows(at("capsule-bars"), about.classes, 2);
  makeRows(at("plain-bars"), about.classes, 1);
  offerModels();

  at("left").addEventListener("click", () => byUser(degrees + 90));
  at("right").addEventListener("click", () => byUser(degrees - 90));
  at("degrees").addEventListener("input", (event) => byUser(Number(event.target.value)));
  at("around").addEventListener("click", () => pixels && fullCircle());
  at("pose-degrees").addEventListener("input", (event) => {
    poseDegrees = Number(event.target.value);
    at("pose-degrees-out").textContent = `${poseDegrees}°`;
    if (pixels) ask();
  });
  at("mode-rotate").addEventListener("click", () => setDrawing(false));
  at("mode-draw").addEventListener("click", () => setDrawing(true));
  at("clear").addEventListener("click", clear);
  at("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    setDrawing(false);
    await readImage(file, about.digits && at("centre").checked);
  });
  dragToRotate();
  draw();
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const digits = await offerDigits();
  if (digits.length) digits[7].click();
  else setDrawing(true);
}

const redraw = () => reply && (drawing ? showSheet() : show(degrees));

// What to do when the tab is chosen.
function imagesTab() {
  if (!model) return startImages().catch(complain);
  describe();
  redraw();
}

async function start() {
  about = await send("/api/model");
  offerTabs({ images: imagesTab, ...(about.shapes && { shapes: shapesTab(about.shapes) }) });
}

start().catch(complain);
