// Texts on a picture: names of things, labels, what agents do, and marks.
const MavicLabels = (() => {
  "use strict";

  const EDGE = "#000000";
  const GOOD = "#00664a";
  const BAD = "#b02a00";
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  const ROUND = 2 * Math.PI;

  const words = (name) => name.toLowerCase().replaceAll(/[_-]/g, " ");

  const circle = (pen, x, y, radius) => {
    pen.beginPath();
    pen.arc(x, y, radius, 0, ROUND);
  };

  // Writes what people call a thing below its picture: the whole name, or its first word if there is no more room.
  function called(brush, sprite) {
    const { pen, unit, small } = brush;
    const [middle, width, bottom] = [(sprite.x + sprite.width / 2) * unit, sprite.width * unit, (sprite.y + sprite.height) * unit];
    const size = clamp(0.17 * unit, 0.9 * small, 1.3 * small);
    pen.font = "bold " + size + "px " + FONT;
    const fits = (text) => pen.measureText(text).width <= Math.max(width, unit) - 2;
    const parts = sprite.name.split(" ");
    const lines = fits(sprite.name) ? [sprite.name] : unit > 4 * small && parts.length < 3 ? parts : parts.slice(0, 1);
    if (!lines.every(fits) || (sprite.shape === "food" && unit < 4 * small)) return;
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    pen.lineJoin = "round";
    pen.lineWidth = size * 0.35;
    pen.strokeStyle = brush.look.paper;
    pen.fillStyle = EDGE;
    lines.forEach((text, i) => {
      const y = Math.min(bottom, pen.canvas.height) - 0.06 * unit - size * (lines.length - 1 - i);
      pen.strokeText(text, middle, y);
      pen.fillText(text, middle, y);
    });
  }

  // Draws a text no wider than `wide`, if it stays readable so, with a halo in the background's colour.
  function write({ pen, small }, text, x, y, wide, size, colour, ground) {
    const font = (pixels) => "bold " + pixels + "px " + FONT;
    pen.font = font(size);
    const over = pen.measureText(text).width / wide;
    if (over > 1) size = Math.max(Math.min(small, size), size / over);
    pen.font = font(Math.max(size, Math.min(small, size)));
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    pen.lineWidth = Math.max(2, size * 0.22);
    pen.strokeStyle = ground;
    pen.strokeText(text, x, y);
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
  }

  function pill({ pen, line }, text, left, top, width, height, fill, ink) {
    pen.beginPath();
    pen.roundRect(left, top, width, height, height * 0.3);
    pen.fillStyle = fill;
    pen.fill();
    pen.lineWidth = line * 0.7;
    pen.strokeStyle = EDGE;
    pen.stroke();
    pen.fillStyle = ink;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, left + width / 2, top + height / 2 + height * 0.04);
  }

  // Draws what a robot carries, on a white pill at its shoulder.
  function badge(brush, text, x, y) {
    const { pen, unit, small, look } = brush;
    const size = Math.max(small, 0.19 * unit);
    pen.font = size + "px " + FONT;
    const width = pen.measureText(text).width + size * 0.7;
    const height = size * 1.35;
    const left = clamp(x - width / 2, 1, pen.canvas.width - width - 1);
    const top = clamp(y - height / 2, 1, pen.canvas.height - height - 1);
    pill(brush, text, left, top, width, height, look.paper, EDGE);
  }

  const clamp = (value, low, high) => Math.max(low, Math.min(value, high));

  // Draws an agent's macro under its robot: inverted if the agent has just decided, with ✓ or ✗ if the agent is
  // instructed.
  function tag(brush, canvas, agent, middle, taken) {
    const { pen, unit, small, look } = brush;
    const size = clamp(0.14 * unit, small, 1.4 * small);
    pen.font = (agent.decided ? "bold " : "") + size + "px " + FONT;
    const text = agent.doing || words(agent.macro);
    const height = size * 1.5;
    const marked = agent.complies === null ? 0 : height;
    const width = pen.measureText(text).width + size * 0.9;
    const left = clamp(middle.x - (width + marked) / 2, 1, canvas.width - width - marked - 1);
    const below = middle.y + 1.25 * middle.radius;
    const above = middle.y - 1.35 * middle.radius - height;
    const hits = (top) =>
      taken.some(
        (t) => left < t.right && t.left < left + width + marked && top < t.bottom && t.top < top + height,
      );
    const tops = [below, above, below + height, below + 2 * height, above - height].map((top) =>
      clamp(top, 1, canvas.height - height - 1),
    );
    const top = tops.find((t) => !hits(t)) ?? below;
    taken.push({ left, top, right: left + width + marked, bottom: top + height });
    const [fill, ink] = agent.decided ? [EDGE, look.paper] : [look.paper, EDGE];
    pill(brush, text, left + marked, top, width, height, fill, ink);
    if (marked) mark(brush, agent.complies, left + marked / 2, top + height / 2, height / 2);
  }

  // Draws a green tick or a red cross on a disc.
  function mark({ pen, look }, good, cx, cy, radius) {
    circle(pen, cx, cy, radius);
    pen.fillStyle = good ? GOOD : BAD;
    pen.fill();
    pen.strokeStyle = look.paper;
    pen.lineWidth = radius * 0.26;
    pen.lineCap = "round";
    pen.stroke();
    const d = radius * 0.42;
    pen.beginPath();
    if (good) {
      pen.moveTo(cx - d, cy + 0.1 * d);
      pen.lineTo(cx - 0.25 * d, cy + 0.8 * d);
      pen.lineTo(cx + d, cy - 0.75 * d);
    } else {
      pen.moveTo(cx - d, cy - d);
      pen.lineTo(cx + d, cy + d);
      pen.moveTo(cx + d, cy - d);
      pen.lineTo(cx - d, cy + d);
    }
    pen.stroke();
    pen.lineCap = "butt";
  }

  return { words, write, called, badge, tag, mark, circle, clamp, EDGE, GOOD, BAD, FONT };
})();
