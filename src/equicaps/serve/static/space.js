// Rotations of space, as matrices row by row, and clouds of points on a canvas.
import { arrow, pen } from "/canvas.js";

export const IDENTITY = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
const AXES = [["x", "#ff5a43"], ["y", "#3ddc6f"], ["z", "#5aa2ff"]];

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const applied = (matrix, point) => matrix.map((row) => dot(row, point));
export const transposed = (matrix) => matrix[0].map((_, k) => matrix.map((row) => row[k]));
export function product(a, b) {
  const columns = transposed(b);
  return a.map((row) => columns.map((column) => dot(row, column)));
}

// What the first, then the second rotation does, made orthonormal, so that rounding errors do not add up.
export function composed(second, first) {
  const [a, b] = product(second, first);
  const x = a.map((value) => value / Math.hypot(...a));
  const across = b.map((value, k) => value - dot(b, x) * x[k]);
  const y = across.map((value) => value / Math.hypot(...across));
  return [x, y, [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]];
}

const ofQuaternion = (w, x, y, z) => [
  [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
  [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
  [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
];

// By an angle in radians, counter-clockwise when the axis, of length 1, points at the viewer.
export function about([x, y, z], angle) {
  const sine = Math.sin(angle / 2);
  return ofQuaternion(Math.cos(angle / 2), sine * x, sine * y, sine * z);
}

// A rotation drawn uniformly from all (Shoemake 1992).
export function randomRotation() {
  const [a, b, c] = [Math.random(), 2 * Math.PI * Math.random(), 2 * Math.PI * Math.random()];
  const [p, q] = [Math.sqrt(1 - a), Math.sqrt(a)];
  return ofQuaternion(p * Math.sin(b), p * Math.cos(b), q * Math.sin(c), q * Math.cos(c));
}

// The angle in degrees from one rotation to another; from the distance, because the trace is inexact for small angles.
export function angleBetween(a, b) {
  const distance = Math.hypot(...a.flatMap((row, i) => row.map((value, k) => value - b[i][k])));
  return (2 * Math.asin(Math.min(1, distance / Math.sqrt(8))) * 180) / Math.PI;
}

// From the axes of the points, of which the third points up, to those of the screen: right, up, and towards the viewer.
const [AZIMUTH, ELEVATION] = [(-35 * Math.PI) / 180, (22 * Math.PI) / 180];
const [ca, sa, ce, se] = [Math.cos(AZIMUTH), Math.sin(AZIMUTH), Math.cos(ELEVATION), Math.sin(ELEVATION)];
export const VIEW = [[ca, sa, 0], [-sa * se, ca * se, ce], [sa * ce, -ca * ce, se]];

// The points of a shape of radius 1, near ones bright and large, and the three axes of a frame, unless it is null.
export function drawCloud(canvas, points, frame = null, { size = 1 } = {}) {
  const { context, width, height } = pen(canvas);
  const [x, y, scale] = [width / 2, height / 2, 0.46 * Math.min(width, height)];
  const seen = points.map((point) => applied(VIEW, point)).sort((a, b) => a[2] - b[2]);
  for (const [right, up, near] of seen) {
    const depth = Math.min(1, Math.max(0, (near + 1) / 2));
    const side = size * (1.2 + 2.2 * depth);
    context.fillStyle = `hsl(${205 - 25 * depth} ${30 + 30 * depth}% ${26 + 56 * depth}%)`;
    context.fillRect(x + scale * right - side / 2, y - scale * up - side / 2, side, side);
  }
  if (frame) drawFrame(context, x, y, 0.95 * scale, product(VIEW, frame));
}

// Columns of a frame as arrows, the farthest first; beside each its letter.
function drawFrame(context, x, y, length, frame) {
  const arrows = transposed(frame).map((tip, k) => [tip, ...AXES[k]]).sort((a, b) => a[0][2] - b[0][2]);
  context.font = "bold 14px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [[right, up], letter, shade] of arrows) {
    context.strokeStyle = context.fillStyle = shade;
    arrow(context, x, y, length * right, length * up, 4);
    const beyond = 1 + 12 / Math.max(12, length * Math.hypot(right, up));
    context.fillText(letter, x + beyond * length * right, y - beyond * length * up);
  }
}
