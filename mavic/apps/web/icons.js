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
    return { path, disc, box, text };
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

  const WEARS = { // what an agent's disc wears; u and v are in units of the disc's box
    cook(b) {
      b.path([[0.34, 0.22], [0.66, 0.22], [0.66, 0.1], [0.34, 0.1]], "#ffffff");
      for (const [u, r] of [[0.36, 0.1], [0.5, 0.12], [0.64, 0.1]]) b.disc(u, 0.06, r, "#ffffff");
    },
    rover(b) {
      for (const u of [0.12, 0.78]) b.box(u, 0.3, 0.1, 0.4, "#303338", 0.03);
    },
    arm(b) {
      b.path([[0.72, 0.3], [0.94, 0.12], [0.9, 0.02], [1, 0.08], [1.02, 0.2], [0.92, 0.2], [0.78, 0.36]], "#c7ced6");
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

  function wear(pen, picture, x, y, size, line) {
    if (!(picture in WEARS)) return;
    pen.save();
    pen.lineWidth = line;
    pen.lineJoin = "round";
    pen.strokeStyle = EDGE;
    WEARS[picture](brush(pen, x, y, size));
    pen.restore();
  }

  return { known, draw, wear, names: Object.keys(ICONS) };
})();
