// The controls and figures of the page. The server rotates the picture and runs the networks; nothing is cached.
import { drawCompass, drawLayer, drawPixels, drawPose, drawTrace, drawWedge, pen, raster } from "/canvas.js";

const at = (id) => document.getElementById(id);
const percent = (value) => `${(100 * value).toFixed(1)}%`;
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

async function send(address, options, patience = 5) {
  const response = await fetch(address, options);
  if (response.status === 503 && patience) { // too many others are waiting
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get("Retry-After"))));
    return send(address, options, patience - 1);
  }
  const content = await response.json();
  if (!response.ok) throw new Error(content.detail);
  return content;
}

// One question at a time; of those that arrive in the meantime only the last is asked.
let asking = null;
let again = false;
function ask() {
  again = true;
  asking ??= (async () => {
    try {
      while (again) {
        again = false;
        await askOnce();
      }
    } catch (error) {
      complain(error);
    } finally {
      asking = null;
    }
  })();
  return asking;
}

const answered = (question) => send("/api/answer", {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question),
});

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

function complain(error) {
  at("problem").textContent = error instanceof TypeError ? "The server does not respond. Is it still running?" : error.message;
  at("problem").hidden = false;
}

// --- display

function probabilities(answer) {
  const scores = about.classes.map((each) => answer.scores[each]);
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

const followed = () => name ?? upright.capsules.label;

function remember(angle, { capsules, plain }) {
  const place = about.classes.indexOf(followed());
  trace.set(angle, [probabilities(capsules)[place], plain && probabilities(plain)[place]]);
}

function show(angle) {
  const { capsules, plain } = reply;
  if (!drawing) showPicture();
  fill("capsule-bars", capsules, true);
  at("label").textContent = capsules.label;
  at("confidence").textContent = percent(capsules.confidence);
  const within = capsules.angle_error === null ? "" : ` ± ${capsules.angle_error.toFixed(0)}°`;
  const known = capsules.period === 360 ? "" : ` mod ${capsules.period}°`;
  at("angle").textContent = capsules.angle === null ? "none" : signed(capsules.angle) + within + known;
  at("angle").dataset.degrees = capsules.angle;
  drawCompass(at("compass"), capsules.angle);
  showChange(angle);
  if (plain) {
    fill("plain-bars", plain, false);
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

function fill(id, answer, agreements) {
  const found = probabilities(answer);
  [...at(id).tBodies[0].rows].forEach((row, k) => {
    const each = about.classes[k];
    row.classList.toggle("first", each === answer.label);
    const bars = row.querySelectorAll("i");
    bars[0].style.transform = `scaleX(${found[k]})`;
    row.cells[2].textContent = percent(found[k]);
    if (agreements) {
      bars[1].style.transform = `scaleX(${answer.agreements[each]})`;
      row.cells[4].textContent = answer.agreements[each].toFixed(2);
    }
  });
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

async function upload(file, centre) {
  try {
    const picture = await send(`/api/picture?centre=${centre}`, {
      method: "POST", headers: { "Content-Type": file.type || "application/octet-stream" }, body: file,
    });
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
      sheet.toBlob((blob) => (sent = sent.then(() => upload(blob, about.digits))), "image/png");
    });
  }
}

// --- start

function rows(id, columns) {
  const body = at(id).tBodies[0];
  at(id).classList.toggle("long", about.classes.some((each) => each.length > 2));
  for (const each of about.classes) {
    const row = body.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = each;
    row.append(head);
    for (let k = 0; k < columns; k += 1) {
      const bar = document.createElement("span");
      bar.className = k ? "bar thin" : "bar";
      bar.setAttribute("aria-hidden", "true");
      bar.append(document.createElement("i"));
      row.insertCell().append(bar);
      row.insertCell();
    }
  }
}

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

// Everything on the page that depends on the model but not on its reply; then asks it about the picture.
function choose(chosen) {
  model = chosen;
  forget();
  tour += 1;
  at("model").textContent = `model ${model.name}: ${model.task}`;
  at("decoded").hidden = model.reconstruction_side === null;
  document.querySelector("main").classList.toggle("undecoded", model.reconstruction_side === null);
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

async function start() {
  about = await send("/api/model");
  at("plain").hidden = !about.plain;
  document.querySelector("main").classList.toggle("alone", !about.plain);
  document.querySelector(".plain-key").hidden = !about.plain;
  at("centre-label").hidden = at("pick-title").hidden = !about.digits;
  at("centre").checked = about.digits;
  rows("capsule-bars", 2);
  rows("plain-bars", 1);
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
    await upload(file, about.digits && at("centre").checked);
  });
  dragToRotate();
  draw();
  const redraw = () => reply && (drawing ? showSheet() : show(degrees));
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const digits = await offerDigits();
  if (digits.length) digits[7].click();
  else setDrawing(true);
}

start().catch(complain);
