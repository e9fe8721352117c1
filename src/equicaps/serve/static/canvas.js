// Drawing on canvases: pictures, arrows, fields of arrows, the curve over the angle. Angles are counter-clockwise, y points up.

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// A context whose unit is the CSS pixel, sharp on any screen, and its size.
export function pen(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const dense = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * dense));
  canvas.height = Math.max(1, Math.round(height * dense));
  const context = canvas.getContext("2d");
  context.scale(dense, dense);
  return { context, width, height };
}

// A canvas of side x side pixels from bytes, channel by channel.
export function raster(pixels, side) {
  const small = document.createElement("canvas");
  small.width = small.height = side;
  const image = new ImageData(side, side);
  const count = side * side;
  const [red, green, blue] = pixels.length === 3 * count ? [0, count, 2 * count] : [0, 0, 0];
  for (let k = 0; k < count; k += 1) {
    image.data.set([pixels[red + k], pixels[green + k], pixels[blue + k], 255], 4 * k);
  }
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

export function drawPixels(canvas, pixels, side, { dim = 1, inset = 0 } = {}) {
  const { context, width, height } = pen(canvas);
  context.imageSmoothingEnabled = false;
  context.globalAlpha = dim;
  context.drawImage(raster(pixels, side), inset * width, inset * height, (1 - 2 * inset) * width, (1 - 2 * inset) * height);
  context.globalAlpha = 1;
  return { context, width, height };
}

// An arrow from a point by (dx, dy) pixels; dy points up.
export function arrow(context, x, y, dx, dy, line) {
  const length = Math.hypot(dx, dy);
  if (length < 0.5) return;
  const [ux, uy] = [dx / length, -dy / length];
  const head = Math.min(0.5 * length, Math.max(2.6 * line, 0.18 * length));
  const neck = [x + (length - head) * ux, y + (length - head) * uy];
  context.lineWidth = line;
  context.lineCap = "round";
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(...neck);
  context.stroke();
  context.beginPath();
  context.moveTo(x + length * ux, y + length * uy);
  context.lineTo(neck[0] - 0.5 * head * uy, neck[1] + 0.5 * head * ux);
  context.lineTo(neck[0] + 0.5 * head * uy, neck[1] - 0.5 * head * ux);
  context.closePath();
  context.fill();
}

// An arrow for a pose; it points up for an upright picture.
export function drawPose(context, x, y, length, degrees, line) {
  const angle = ((degrees + 90) * Math.PI) / 180;
  arrow(context, x, y, length * Math.cos(angle), length * Math.sin(angle), line);
  context.beginPath();
  context.arc(x, y, 1.1 * line, 0, 2 * Math.PI);
  context.fill();
}

// The sector in which the pose may lie, so that what is below shines through.
export function drawWedge(context, x, y, length, degrees, error) {
  const [from, to] = [degrees + 90 - error, degrees + 90 + error].map((angle) => (-angle * Math.PI) / 180);
  context.save();
  context.globalAlpha = 0.3;
  context.shadowBlur = 0;
  context.beginPath();
  context.moveTo(x, y);
  context.arc(x, y, length, to, from);
  context.closePath();
  context.fill();
  context.restore();
}

export function drawCompass(canvas, degrees) {
  const { context, width, height } = pen(canvas);
  const radius = Math.max(0, width / 2 - 3); // nothing to see while another tab is chosen
  context.strokeStyle = colour("line");
  context.lineWidth = 2;
  context.beginPath();
  context.arc(width / 2, height / 2, radius, 0, 2 * Math.PI);
  for (let k = 0; k < 8; k += 1) {
    const [x, y] = [Math.cos((k * Math.PI) / 4), Math.sin((k * Math.PI) / 4)];
    const inner = k % 2 ? 0.9 : 0.8;
    context.moveTo(width / 2 + inner * radius * x, height / 2 + inner * radius * y);
    context.lineTo(width / 2 + radius * x, height / 2 + radius * y);
  }
  context.stroke();
  if (degrees === null) return;
  context.fillStyle = context.strokeStyle = colour("arrow");
  drawPose(context, width / 2, height / 2, 0.78 * radius, degrees, 3.5);
}

// The poses of one capsule on its grid, or of all capsules at a single position.
export function drawLayer(canvas, layer, pixels, side) {
  const { context, width } = drawPixels(canvas, pixels, side, { dim: layer.side > 1 ? 0.42 : 0.2 });
  context.fillStyle = context.strokeStyle = "#ff6a3d";
  const cell = width / layer.side;
  layer.arrows.forEach(([x, y], k) => {
    if (layer.shown === null) return arrow(context, width / 2, width / 2, 0.46 * width * x, 0.46 * width * y, 1.4);
    const [row, column] = [Math.floor(k / layer.side), k % layer.side];
    const reach = Math.min(1.2 + layer.side / 16, 0.5 + 0.15 * layer.side); // arrows of fine grids may overlap their neighbours
    const [dx, dy] = [reach * cell * x, reach * cell * y];
    arrow(context, (column + 0.5) * cell - dx / 2, (row + 0.5) * cell + dy / 2, dx, dy, Math.min(4, Math.max(1.2, cell / 10)));
  });
}

// The probability of one class by angle. Points are [degrees, capsules, plain or null], sorted by angle.
export function drawTrace(canvas, points, now) {
  const { context, width, height } = pen(canvas);
  const [left, right, top, bottom] = [48, 18, 8, 24];
  const x = (degrees) => left + ((degrees + 180) / 360) * (width - left - right);
  const y = (probability) => top + (1 - probability) * (height - top - bottom);
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = colour("quiet");
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.textAlign = "center";
  for (const degrees of [-180, -90, 0, 90, 180]) {
    context.beginPath();
    context.moveTo(x(degrees), y(1));
    context.lineTo(x(degrees), y(0));
    context.stroke();
    context.fillText(`${degrees}°`, x(degrees), height - 6);
  }
  context.textAlign = "right";
  for (const probability of [0, 0.5, 1]) {
    context.beginPath();
    context.moveTo(x(-180), y(probability));
    context.lineTo(x(180), y(probability));
    context.stroke();
    context.fillText(`${100 * probability}%`, left - 6, y(probability) + 4);
  }
  for (const [column, name, line] of [[2, "plain", 2], [1, "capsules", 3]]) {
    const known = points.filter((point) => point[column] !== null);
    context.strokeStyle = context.fillStyle = colour(name);
    context.lineWidth = line;
    context.lineJoin = "round";
    context.beginPath();
    known.forEach((point, k) => context[k ? "lineTo" : "moveTo"](x(point[0]), y(point[column])));
    context.stroke();
    for (const point of known) {
      context.beginPath();
      context.arc(x(point[0]), y(point[column]), point[0] === now ? 5.5 : 1.6, 0, 2 * Math.PI);
      context.fill();
    }
  }
}
