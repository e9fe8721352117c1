// The tab of shapes. The page rotates the points, and the server runs the network on them as they are then.
import { fillRows, makeRows, percent } from "/bars.js";
import { complaining, latest, post, send, upload } from "/server.js";
import { IDENTITY, VIEW, about, angleBetween, applied, composed, drawCloud, product, randomRotation, transposed } from "/space.js";

const at = (id) => document.getElementById(id);
const say = complaining(at("shape-problem"));
const complain = (error) => {
  say(error);
  at("shape-answer").setAttribute("aria-busy", "false");
};
const STEP = Math.PI / 36; // of an arrow key; with Shift, a quarter turn

let model; // the description of the model
let points = null; // of the shape in the first view
let turn = IDENTITY; // the rotation since then
let first = null; // the answer in the first view
let answer = null; // the latest answer

// --- questions

const moved = (cloud, rotation) => cloud.map((point) => applied(rotation, point));
const answered = async (cloud) => post("/api/shapes/answer", { points: cloud });

const ask = latest(async () => {
  const [shape, rotation] = [points, turn];
  const found = await answered(moved(shape, rotation));
  const before = rotation === IDENTITY ? found.capsules : first ?? (await answered(shape)).capsules;
  if (shape !== points) return; // another was chosen in the meantime
  [answer, first] = [found.capsules, before];
  show(rotation);
  at("cost").textContent = `This answer took ${found.cpu_milliseconds.toFixed(0)} ms of CPU time.`;
  at("shape-answer").setAttribute("aria-busy", rotation !== turn);
}, complain);

// --- display

const size = (change) => (change >= 0.01 ? change.toFixed(2) : change ? change.toExponential(0) : "0");

function draw() {
  if (points) drawCloud(at("cloud"), moved(points, turn), answer && answer.rotation);
}

function show(rotation) {
  draw();
  at("shape-label").textContent = answer.label;
  at("shape-confidence").textContent = percent(answer.confidence);
  const within = answer.angle_error === null ? "" : ` ± ${answer.angle_error.toFixed(0)}°`;
  at("shape-angle").textContent = answer.rotation ? `${answer.angle.toFixed(1)}°${within} from the upright ${answer.label}` : "none";
  at("frame-hint").textContent = answer.rotation
    ? "The arrows x, y and z show where the axes of an upright shape of this class have gone."
    : "This shape has no pose, so there are no axes to show.";
  showChange(rotation);
  fillRows(at("shape-bars"), model.classes, answer);
}

function showChange(rotation) {
  const [badge, follows] = [at("shape-change"), at("follows")];
  const same = answer.label === first.label;
  badge.textContent = rotation === IDENTITY ? "" : same
    ? `confidence changed by ${size(Math.abs(answer.confidence - first.confidence))}`
    : `was “${first.label}” in the first view`;
  badge.classList.toggle("bad", !same);
  badge.classList.toggle("good", same);
  const both = rotation !== IDENTITY && answer.rotation && first.rotation && same;
  follows.textContent = both
    ? `The frame is within ${size(angleBetween(answer.rotation, product(rotation, first.rotation)))}° of where your rotation takes it.`
    : "";
}

// --- rotation

function rotateTo(rotation) {
  turn = rotation;
  at("shape-degrees").textContent = `${angleBetween(turn, IDENTITY).toFixed(0)}°`;
  at("shape-answer").setAttribute("aria-busy", "true");
  draw();
  return ask();
}

// By an angle about an axis of the screen: right, up, towards the viewer.
function rotateBy(axis, angle) {
  if (points && angle) rotateTo(composed(product(transposed(VIEW), product(about(axis, angle), VIEW)), turn));
}

function dragToRotate() {
  const cloud = at("cloud");
  let last = null;
  cloud.addEventListener("pointerdown", (event) => {
    cloud.setPointerCapture(event.pointerId);
    last = [event.clientX, event.clientY];
  });
  cloud.addEventListener("pointermove", (event) => {
    if (!last) return;
    const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
    const length = Math.hypot(dx, dy);
    last = [event.clientX, event.clientY];
    if (length) rotateBy([dy / length, dx / length, 0], length / (0.46 * cloud.clientWidth)); // what is under the pointer follows it
  });
  for (const end of ["pointerup", "pointercancel"]) cloud.addEventListener(end, () => (last = null));
  cloud.addEventListener("keydown", (event) => {
    const axis = { ArrowRight: [0, 1, 0], ArrowLeft: [0, -1, 0], ArrowDown: [1, 0, 0], ArrowUp: [-1, 0, 0] }[event.key];
    if (!axis) return;
    event.preventDefault();
    rotateBy(axis, event.shiftKey ? Math.PI / 2 : STEP);
  });
}

// --- shapes

function setShape(cloud) {
  points = cloud;
  first = answer = null;
  at("shape-problem").hidden = true;
  return rotateTo(IDENTITY);
}

function press(button) {
  for (const each of at("solids").children) each.setAttribute("aria-pressed", each === button);
}

async function readFile(file) {
  try {
    const kind = file.name.split(".").pop().toLowerCase();
    const found = await upload(`/api/shapes/file?kind=${encodeURIComponent(kind)}`, file, "application/octet-stream");
    press(null);
    return setShape(found.points);
  } catch (error) {
    complain(error);
  }
}

async function offerShapes() {
  for (const { points: cloud, label } of await send("/api/shapes")) {
    const [button, canvas] = [document.createElement("button"), document.createElement("canvas")];
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.title = label;
    button.setAttribute("aria-pressed", "false");
    button.append(canvas);
    button.addEventListener("click", () => {
      press(button);
      setShape(cloud);
    });
    at("solids").append(button);
    drawCloud(canvas, cloud, null, { size: 0.45 });
  }
  at("solids").children[1].click();
}

function dropFiles() {
  const stage = at("shape-stage");
  stage.addEventListener("dragover", (event) => event.preventDefault());
  stage.addEventListener("drop", (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (file) readFile(file);
  });
}

function start() {
  makeRows(at("shape-bars"), model.classes, 2);
  at("examples").textContent = `Choose one of the ${model.examples}`;
  at("random").addEventListener("click", () => points && rotateTo(randomRotation()));
  at("first-view").addEventListener("click", () => points && rotateTo(IDENTITY));
  at("shape-file").addEventListener("change", (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) readFile(file);
  });
  dragToRotate();
  dropFiles();
  window.addEventListener("resize", draw);
  offerShapes().catch(complain);
}

// What to do when the tab is chosen.
export function shapesTab(described) {
  return () => {
    at("model").textContent = `model ${described.name}: ${described.task}`;
    if (model) return draw();
    model = described;
    return start();
  };
}
