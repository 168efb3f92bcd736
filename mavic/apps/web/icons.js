// Pictures of things, drawn on a canvas as what they are. A picture is {pen, x, y, size}: it fills the square at x, y.
// Names come from the worlds (`Sprite.picture`); a name with parts ("tool-2", "plate-patty") is drawn by its first part.
const MavicIcons = (() => {
  "use strict";

  const EDGE = "#000000";
  const ROUND = 2 * Math.PI;
  const FOOD = { tomato: "#d5392b", lettuce: "#6fbf3a", onion: "#e3c2dd", peas: "#3f9b45", patty: "#7a4a22", bowl: "#cfd8e3" };

  // Turns a drawing in units of the square (0 to 1) into one in pixels.
  function brush(pen, x, y, size) {
    const at = (u, v) => [x + u * size, y + v * size];
    const path = (points, fill, close = true) => {
      pen.beginPath();
      points.forEach(([u, v], i) => (i ? pen.lineTo(...at(u, v)) : pen.moveTo(...at(u, v))));
      if (close) pen.closePath();
      if (fill) {
        pen.fillStyle = fill;
        pen.fill();
      }
      pen.stroke();
    };
    const disc = (u, v, r, fill) => {
      pen.beginPath();
      pen.arc(...at(u, v), r * size, 0, ROUND);
      pen.fillStyle = fill;
      pen.fill();
      pen.stroke();
    };
    const dot = (u, v, r, fill) => {
      pen.beginPath();
      pen.arc(...at(u, v), r * size, 0, ROUND);
      pen.fillStyle = fill;
      pen.fill();
    };
    const curve = ([from, over, to]) => {
      pen.beginPath();
      pen.moveTo(...at(...from));
      pen.quadraticCurveTo(...at(...over), ...at(...to));
      pen.stroke();
    };
    const box = (u, v, w, h, fill, round = 0.04) => {
      pen.beginPath();
      pen.roundRect(...at(u, v), w * size, h * size, round * size);
      pen.fillStyle = fill;
      pen.fill();
      pen.stroke();
    };
    const text = (words, u, v, high, fill = EDGE) => {
      pen.font = "bold " + high * size + "px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillStyle = fill;
      pen.fillText(words, ...at(u, v));
    };
    return { path, disc, dot, curve, box, text };
  }

  function food(b, name, chopped) {
    const fill = FOOD[name];
    if (chopped) {
      for (const [u, v] of [[0.32, 0.4], [0.52, 0.32], [0.68, 0.46], [0.4, 0.62], [0.6, 0.66]]) b.box(u - 0.1, v - 0.08, 0.2, 0.17, fill, 0.03);
    } else if (name === "lettuce") {
      for (const [u, v, r] of [[0.36, 0.5, 0.2], [0.64, 0.5, 0.2], [0.5, 0.38, 0.2], [0.5, 0.62, 0.2]]) b.disc(u, v, r, fill);
      b.disc(0.5, 0.5, 0.15, "#b4e08a");
    } else if (name === "peas") {
      b.path([[0.12, 0.62], [0.3, 0.38], [0.7, 0.34], [0.88, 0.4], [0.7, 0.64], [0.32, 0.72]], fill);
      for (const u of [0.36, 0.52, 0.68]) b.disc(u, 0.52, 0.09, "#a6dd7a");
    } else {
      b.disc(0.5, 0.54, 0.3, fill);
      if (name === "tomato") b.path([[0.5, 0.36], [0.34, 0.22], [0.48, 0.28], [0.56, 0.14], [0.58, 0.28], [0.7, 0.26]], "#2f8a3c");
      else b.path([[0.44, 0.28], [0.5, 0.1], [0.56, 0.28]], "#c9a24b");
    }
  }

  function dish(b, name, v = 0.5) {
    if (name === "bowl") b.path([[0.2, v - 0.06], [0.8, v - 0.06], [0.66, v + 0.24], [0.34, v + 0.24]], FOOD.bowl);
    else {
      b.disc(0.5, v, 0.24, FOOD.patty);
      b.path([[0.4, v - 0.08], [0.6, v - 0.08]], null, false);
      b.path([[0.4, v + 0.06], [0.6, v + 0.06]], null, false);
    }
  }

  function tool(b, number, scale = 1) {
    const steel = "#c7ced6";
    const wood = "#a8682d";
    if (number === 0) { // a hammer
      b.path([[0.46, 0.3], [0.54, 0.3], [0.54, 0.88], [0.46, 0.88]], wood);
      b.box(0.22, 0.14, 0.56, 0.2, steel);
    } else if (number === 1) { // a spanner
      b.path([[0.3, 0.12], [0.3, 0.3], [0.44, 0.38], [0.44, 0.9], [0.56, 0.9], [0.56, 0.38], [0.7, 0.3], [0.7, 0.12], [0.6, 0.24], [0.4, 0.24]], steel);
    } else if (number === 2) { // a screwdriver
      b.box(0.4, 0.1, 0.2, 0.36, "#d5392b", 0.06);
      b.path([[0.46, 0.46], [0.54, 0.46], [0.54, 0.9], [0.46, 0.9]], steel);
    } else { // a saw
      b.path([[0.14, 0.5], [0.74, 0.3], [0.74, 0.62], [0.62, 0.58], [0.5, 0.66], [0.38, 0.6], [0.26, 0.66]], steel);
      b.box(0.7, 0.26, 0.2, 0.4, wood);
    }
    if (scale) b.text(String(number), 0.84, 0.8, 0.3);
  }

  const ICONS = {
    board(b) {
      b.box(0.1, 0.2, 0.66, 0.62, "#d9a860", 0.08);
      b.path([[0.18, 0.42], [0.66, 0.42]], null, false);
      b.path([[0.18, 0.6], [0.66, 0.6]], null, false);
      b.path([[0.8, 0.12], [0.9, 0.2], [0.88, 0.56], [0.8, 0.56]], "#dfe4ea");
      b.box(0.79, 0.56, 0.1, 0.3, "#40312a");
    },
    oven(b) {
      b.box(0.1, 0.1, 0.8, 0.8, "#6b7280", 0.06);
      b.box(0.2, 0.36, 0.6, 0.42, "#f2a33c", 0.04);
      for (const u of [0.26, 0.42, 0.58, 0.74]) b.disc(u, 0.23, 0.05, "#e5e7eb");
    },
    blender(b) {
      b.path([[0.28, 0.1], [0.72, 0.1], [0.64, 0.6], [0.36, 0.6]], "#a9d8f5");
      b.box(0.3, 0.62, 0.4, 0.26, "#4b5563", 0.05);
      b.disc(0.5, 0.75, 0.05, "#e5e7eb");
    },
    plate(b, [inside]) {
      b.disc(0.5, 0.5, 0.4, "#ffffff");
      b.disc(0.5, 0.5, 0.26, "#eef2f6");
      if (inside === "bowl" || inside === "patty") dish(b, inside);
      else if (inside) food(b, inside, true);
    },
    hatch(b) {
      b.box(0.12, 0.3, 0.76, 0.56, "#e8fff4", 0.04);
      b.path([[0.2, 0.72], [0.8, 0.72], [0.76, 0.56], [0.64, 0.44], [0.5, 0.4], [0.36, 0.44], [0.24, 0.56]], "#c7ced6");
      b.disc(0.5, 0.36, 0.05, "#c7ced6");
    },
    crate(b) {
      b.box(0.08, 0.08, 0.84, 0.84, "#c99a5b", 0.04);
      for (const v of [0.36, 0.64]) b.path([[0.08, v], [0.92, v]], null, false);
      b.path([[0.08, 0.92], [0.92, 0.08]], null, false);
    },
    person(b) {
      b.disc(0.5, 0.26, 0.16, "#f1c9a5");
      b.path([[0.22, 0.92], [0.26, 0.56], [0.4, 0.46], [0.6, 0.46], [0.74, 0.56], [0.78, 0.92]], "#8aa4c8");
      b.path([[0.34, 0.18], [0.66, 0.18], [0.6, 0.08], [0.4, 0.08]], "#f0c52e");
    },
    shelf(b, [number, count]) {
      b.box(0.04, 0.06, 0.92, 0.88, "#e9dcc6", 0.03);
      b.path([[0.04, 0.9], [0.96, 0.9]], null, false);
      if (Number(count)) tool(b, Number(number), 0);
      else b.text("–", 0.5, 0.5, 0.3, "#6d7177");
    },
    tool: (b, [number]) => tool(b, Number(number)),
    bowl: (b) => dish(b, "bowl"),
    patty: (b) => dish(b, "patty"),
  };
  for (const name of ["tomato", "lettuce", "onion", "peas"]) ICONS[name] = (b, [chopped]) => food(b, name, Boolean(chopped));

  // Agents as figures. `is` is {fill: the agent's colour, ink, glance: [east, south] it looks to, label}.
  const SKIN = "#f3cda6";
  const STEEL = "#c7ced6";
  function eyes(b, [east, south], v, apart, size, fill = EDGE) {
    for (const side of [-apart, apart]) b.dot(0.5 + side + 0.05 * east, v + 0.04 * south, size, fill);
  }
  const FIGURES = {
    cook(b, { fill, ink, glance, label }) {
      b.path([[0.2, 0.98], [0.22, 0.68], [0.34, 0.57], [0.66, 0.57], [0.78, 0.68], [0.8, 0.98]], fill);
      b.path([[0.37, 0.98], [0.37, 0.7], [0.63, 0.7], [0.63, 0.98]], "#ffffff");
      b.disc(0.5, 0.42, 0.2, SKIN);
      eyes(b, glance, 0.41, 0.08, 0.03);
      b.curve([[0.42 + 0.04 * glance[0], 0.5], [0.5 + 0.04 * glance[0], 0.55], [0.58 + 0.04 * glance[0], 0.5]]);
      b.path([[0.31, 0.3], [0.31, 0.2], [0.69, 0.2], [0.69, 0.3]], "#ffffff");
      for (const [u, r] of [[0.36, 0.11], [0.64, 0.11], [0.5, 0.13]]) b.disc(u, 0.14, r, "#ffffff");
      b.box(0.31, 0.24, 0.38, 0.08, fill, 0.02);
      b.text(label, 0.5, 0.84, 0.22);
      for (const u of [0.18, 0.82]) b.disc(u, 0.76, 0.075, SKIN);
    },
    rover(b, { fill, ink, glance, label }) {
      for (const u of [0.08, 0.8]) for (const v of [0.22, 0.62]) b.box(u, v, 0.12, 0.26, "#303338", 0.04);
      b.box(0.16, 0.14, 0.68, 0.76, fill, 0.14);
      b.box(0.26, 0.24, 0.48, 0.26, "#10161d", 0.08);
      eyes(b, glance, 0.37, 0.11, 0.05, "#7ee0ff");
      b.text(label, 0.5, 0.7, 0.24, ink);
    },
    arm(b, { fill, ink, glance, label }) {
      b.path([[0.66, 0.42], [0.88, 0.2], [0.8, 0.06], [0.9, 0.08], [1, 0.2], [0.96, 0.3], [0.74, 0.5]], STEEL);
      b.box(0.14, 0.3, 0.66, 0.6, fill, 0.14);
      b.box(0.24, 0.38, 0.46, 0.22, "#10161d", 0.08);
      eyes(b, glance, 0.49, 0.11, 0.05, "#7ee0ff");
      b.text(label, 0.47, 0.76, 0.22, ink);
    },
  };

  const known = (picture) => Boolean(picture) && picture.split("-")[0] in ICONS;

  function draw(pen, picture, x, y, size, line) {
    const [name, ...parts] = picture.split("-");
    pen.save();
    pen.lineWidth = line;
    pen.lineJoin = "round";
    pen.strokeStyle = EDGE;
    ICONS[name](brush(pen, x, y, size), parts);
    pen.restore();
  }

  const isFigure = (picture) => picture in FIGURES;

  function figure(pen, picture, x, y, size, line, is) {
    pen.save();
    pen.lineWidth = line;
    pen.lineJoin = "round";
    pen.strokeStyle = EDGE;
    FIGURES[picture](brush(pen, x, y, size), is);
    pen.restore();
  }

  return { known, draw, isFigure, figure, names: Object.keys(ICONS) };
})();
