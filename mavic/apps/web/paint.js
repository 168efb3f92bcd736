// Draws scenes and frames on a canvas, shape for shape as mavic/envs/painting.py does with matplotlib. Things that have
// a picture (icons.js) are drawn as what they are. Colours of shapes come from Python (`look`), never from here.
const MavicPaint = (() => {
  "use strict";

  const { words, write, called, badge, tag, mark, circle, clamp, EDGE, GOOD, BAD, FONT } = MavicLabels;
  const OPEN = ["goal", "zone", "spot"]; // seen through: their label stands on paper
  const GLIDES = ["robot", "box", "human"]; // move smoothly from one tick to the next
  const LEAP = 2.5; // cells: a sprite that is farther away in the next tick did not walk there
  const ROUND = 2 * Math.PI;

  const theme = MavicTheme.now;

  // Turns a packed recording (repeated parts stand once, in a pool) into the plain frames that a live page gets.
  function unpack(recording) {
    const at = (index) => recording.pool[index];
    return {
      ...recording,
      frames: recording.frames.map((frame) => ({
        ...frame,
        scene: {
          ...frame.scene,
          sprites: frame.scene.sprites.map(at),
          notes: frame.scene.notes.map(at),
        },
        agents: frame.agents.map(at),
      })),
    };
  }

  // The scene on the way to the next one: `share` 0 gives the first, 1 the second. Agents look where they go: to `next`
  // if `way` is 1, away from it if it is -1.
  function between(scene, next, share, way = 1) {
    if (!next || share <= 0) return scene;
    const names = (sprites) => {
      const seen = {};
      return sprites.map((sprite) => {
        const name = sprite.shape + "/" + sprite.label;
        seen[name] = (seen[name] || 0) + 1;
        return name + "/" + seen[name];
      });
    };
    const later = new Map(names(next.sprites).map((name, i) => [name, next.sprites[i]]));
    const keys = names(scene.sprites);
    const sprites = scene.sprites.map((sprite, i) => {
      const goal = GLIDES.includes(sprite.shape) && later.get(keys[i]);
      if (!goal || Math.hypot(goal.x - sprite.x, goal.y - sprite.y) > LEAP) return sprite;
      return {
        ...sprite,
        x: sprite.x + share * (goal.x - sprite.x),
        y: sprite.y + share * (goal.y - sprite.y),
        glance: [Math.sign(goal.x - sprite.x) * way, Math.sign(goal.y - sprite.y) * way],
      };
    });
    return { ...scene, sprites };
  }

  // Gives a canvas the largest size in CSS pixels at which each cell is a whole number of device pixels.
  // Returns the device pixels of a cell.
  function fit(canvas, scene, width, height) {
    const ratio = globalThis.devicePixelRatio || 1;
    const room = Math.min(width / scene.width, height / scene.height);
    const unit = Math.max(4, Math.floor(room * ratio));
    const [wide, high] = [Math.ceil(unit * scene.width) + 1, Math.ceil(unit * scene.height) + 1];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    canvas.style.width = wide / ratio + "px";
    canvas.style.height = high / ratio + "px";
    return unit;
  }

  function painter(look) {
    for (const shape of look.shapes) {
      if (!(shape in SHAPES)) throw new Error("paint.js cannot draw the shape " + shape);
    }

    // `marks` are {forbids, wants: names of things, picked: numbers of agents}.
    function draw(canvas, scene, unit, agents = [], lines = true, marks = {}) {
      const pen = canvas.getContext("2d");
      const ratio = globalThis.devicePixelRatio || 1;
      const brush = { pen, unit, look, small: 10 * ratio, line: Math.max(ratio, unit * 0.025) };
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.fillStyle = theme().floor || look.paper;
      pen.fillRect(0, 0, canvas.width, canvas.height);
      if (scene.image) image(canvas, scene, () => draw(canvas, scene, unit, agents, lines, marks));
      else if (lines) grid(brush, scene);
      const places = scene.sprites.filter((s) => s.shape === "robot").map(place);
      const drawn = [];
      const robots = [];
      for (const sprite of scene.sprites) {
        let shift = 0;
        if (sprite.shape === "robot") {
          const here = place(sprite);
          if (places.filter((p) => p === here).length > 1) {
            shift = 0.4 * drawn.filter((p) => p === here).length - 0.2;
            drawn.push(here);
          }
        }
        const middle = one(brush, sprite, shift);
        if (sprite.shape !== "robot") continue;
        if ((marks.picked || []).includes(robots.length)) halo(brush, middle);
        robots.push(middle);
      }
      for (const sprite of scene.sprites) {
        if (sprite.name && (marks.forbids || []).includes(sprite.name)) flag(brush, sprite, false);
        if (sprite.name && (marks.wants || []).includes(sprite.name)) flag(brush, sprite, true);
      }
      for (const sprite of scene.sprites) { // not struck out
        if (sprite.name && MavicIcons.known(sprite.picture)) called(brush, sprite);
      }
      const tags = robots.map(face); // nobody's face is covered
      agents.forEach((agent, i) => {
        if (robots[i]) tag(brush, canvas, agent, robots[i], tags);
      });
    }

    return { draw, look };
  }

  // Draws the picture that a simulator rendered. One that is not decoded yet is drawn when it is, unless another one
  // was asked for in the meantime.
  const decoded = new Map();

  function image(canvas, scene, again) {
    canvas.dataset.image = scene.image;
    let picture = decoded.get(scene.image);
    if (!picture) {
      picture = new Image();
      picture.src = scene.image;
      decoded.set(scene.image, picture);
    }
    if (picture.complete) canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    else picture.addEventListener("load", () => canvas.dataset.image === scene.image && again(), { once: true });
  }

  const face = ({ x, y, radius }) => ({ left: x - 0.55 * radius, right: x + 0.55 * radius, top: y - 0.8 * radius, bottom: y + 0.35 * radius });
  const place = (sprite) => sprite.x.toFixed(3) + " " + sprite.y.toFixed(3);

  function grid({ pen, unit, look }, scene) {
    pen.fillStyle = theme().tile;
    for (let x = 0; x < scene.width; x++) {
      for (let y = x % 2; y < scene.height; y += 2) pen.fillRect(x * unit, y * unit, unit, unit);
    }
    pen.strokeStyle = theme().lines || look.grid;
    pen.lineWidth = 1;
    pen.beginPath();
    for (let x = 0; x <= scene.width; x++) {
      pen.moveTo(Math.round(x * unit) + 0.5, 0);
      pen.lineTo(Math.round(x * unit) + 0.5, scene.height * unit);
    }
    for (let y = 0; y <= scene.height; y++) {
      pen.moveTo(0, Math.round(y * unit) + 0.5);
      pen.lineTo(scene.width * unit, Math.round(y * unit) + 0.5);
    }
    pen.stroke();
  }

  // Draws one sprite with its label and load. Where robots share a cell, `shift` moves them apart.
  function one(brush, sprite, shift) {
    const { pen, unit, look } = brush;
    const fill = (theme().fills || {})[sprite.colour] || look.palette[sprite.colour];
    if (!fill || !(sprite.shape in SHAPES)) {
      throw new Error("cannot draw " + sprite.shape + " in " + sprite.colour);
    }
    const box = {
      x: (sprite.x + shift) * unit,
      y: (sprite.y + shift) * unit,
      width: sprite.width * unit,
      height: sprite.height * unit,
    };
    const middle = {
      x: box.x + box.width / 2,
      y: box.y + box.height / 2,
      radius: (shift ? 0.25 : 0.36) * Math.min(box.width, box.height),
    };
    pen.save();
    pen.lineWidth = brush.line;
    pen.fillStyle = fill;
    pen.strokeStyle = EDGE;
    const pictured = MavicIcons.known(sprite.picture);
    const figured = sprite.shape === "robot" && MavicIcons.isFigure(sprite.picture);
    if (pictured) {
      if (sprite.shape === "goal") area(brush, box, middle, sprite, fill);
      const size = Math.min(box.width, box.height) * 0.84;
      pen.translate(middle.x, middle.y);
      if (sprite.width > sprite.height) pen.scale(1.09 * sprite.width / sprite.height, 1); // a long box
      MavicIcons.draw(pen, sprite.picture, -size / 2, -size / 2, size, 0.7 * brush.line);
    } else if (figured) figure(brush, sprite, middle, fill);
    else SHAPES[sprite.shape](brush, box, middle, sprite, fill);
    pen.restore();
    if (!(pictured && sprite.name) && sprite.label && !figured) {
      const open = OPEN.includes(sprite.shape);
      const ground = open ? look.paper : fill;
      const colour = open ? EDGE : look.ink[sprite.colour];
      const room = { box: 0.72, station: 0.72, robot: 0.6, human: 0.5, food: 0.48, plate: 0.5 };
      const wide = (room[sprite.shape] || 0.9) * (shift ? 0.25 * unit * 2 : box.width);
      write(brush, sprite.label, middle.x, middle.y, wide, (shift ? 0.24 : 0.3) * unit, colour, ground);
    }
    if (MavicIcons.known(sprite.carries)) load(brush, sprite, middle);
    else if (sprite.holds) {
      badge(brush, sprite.holds, middle.x + middle.radius, middle.y - middle.radius);
    }
    return middle;
  }

  const HEADINGS = { N: [0, -1], E: [1, 0], S: [0, 1], W: [-1, 0] };

  // Draws an agent as a cook or a robot that looks where it goes, with its nose if it has a heading.
  function figure(brush, sprite, middle, fill) {
    const { pen, look, line } = brush;
    const { x, y, radius } = middle;
    const facing = HEADINGS[sprite.heading];
    pen.fillStyle = "rgb(0 0 0 / 18%)";
    pen.beginPath();
    pen.ellipse(x, y + 1.28 * radius, 0.95 * radius, 0.22 * radius, 0, 0, ROUND);
    pen.fill();
    if (facing) nose(pen, middle, facing);
    const is = { fill, ink: look.ink[sprite.colour], glance: sprite.glance || facing || [0, 0], label: sprite.label };
    MavicIcons.figure(pen, sprite.picture, x - 1.32 * radius, y - 1.32 * radius, 2.64 * radius, 0.7 * line, is);
  }

  function nose(pen, { x, y, radius }, [east, south]) {
    const side = 0.5 * radius;
    const base = [x + 0.86 * radius * east, y + 0.86 * radius * south];
    pen.beginPath();
    pen.moveTo(x + 1.38 * radius * east, y + 1.38 * radius * south);
    pen.lineTo(base[0] - side * south, base[1] + side * east);
    pen.lineTo(base[0] + side * south, base[1] - side * east);
    pen.closePath();
    pen.fillStyle = EDGE;
    solid(pen);
  }

  // Draws what an agent or a station has, on a white disc at its shoulder.
  function load(brush, sprite, middle) {
    const { pen, unit } = brush;
    if (sprite.shape === "robot" && MavicIcons.isFigure(sprite.picture)) { // in its hands, or on its back
      const wide = 1.45 * middle.radius;
      MavicIcons.draw(pen, sprite.carries, middle.x - wide / 2, middle.y + 0.05 * middle.radius, wide, 0.7 * brush.line);
      return;
    }
    const size = (sprite.shape === "robot" ? 0.5 : 0.46) * unit;
    const [x, y] = sprite.shape === "robot" ? [middle.x + 0.75 * middle.radius, middle.y - 0.75 * middle.radius] : [middle.x, middle.y - 0.06 * unit];
    const left = clamp(x - size / 2, 1, pen.canvas.width - size - 1);
    const top = clamp(y - size / 2, 1, pen.canvas.height - size - 1);
    circle(pen, left + size / 2, top + size / 2, 0.56 * size);
    pen.fillStyle = brush.look.paper;
    pen.strokeStyle = EDGE;
    pen.lineWidth = 0.7 * brush.line;
    solid(pen);
    MavicIcons.draw(pen, sprite.carries, left, top, size, 0.6 * brush.line);
  }

  // Marks a thing that the instruction forbids (red, crossed out) or wants (green, with an arrow).
  function flag(brush, sprite, wanted) {
    const { pen, unit, line } = brush;
    const [x, y] = [sprite.x * unit, sprite.y * unit];
    const [width, height] = [sprite.width * unit, sprite.height * unit];
    const inset = 1.5 * line;
    pen.save();
    for (const [colour, thick] of [[brush.look.paper, 5 * line], [wanted ? GOOD : BAD, 2.6 * line]]) {
      pen.strokeStyle = colour;
      pen.lineWidth = thick;
      pen.setLineDash(wanted ? [4 * line, 2.4 * line] : []);
      pen.beginPath();
      pen.roundRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset, 0.12 * unit);
      if (!wanted) {
        pen.moveTo(x + 2 * inset, y + 2 * inset);
        pen.lineTo(x + width - 2 * inset, y + height - 2 * inset);
      }
      pen.stroke();
    }
    pen.restore();
    mark(brush, wanted, x + width - 0.17 * unit, y + 0.17 * unit, 0.17 * unit);
  }

  // Rings an agent that is addressed.
  function halo({ pen, line }, { x, y, radius }) {
    pen.strokeStyle = MavicTheme.ACCENT;
    pen.lineWidth = 2.5 * line;
    circle(pen, x, y, 1.3 * radius);
    pen.stroke();
  }

  const solid = (pen) => {
    pen.fill();
    pen.stroke();
  };
  const rectangle = ({ pen }, box) => {
    pen.beginPath();
    pen.rect(box.x, box.y, box.width, box.height);
    solid(pen);
  };
  const rounded = ({ pen, unit }, box) => {
    const inset = 0.12 * unit;
    pen.beginPath();
    pen.roundRect(
      box.x + inset, box.y + inset, box.width - 2 * inset, box.height - 2 * inset, 0.08 * unit,
    );
    solid(pen);
  };
  const disc = ({ pen }, box, middle) => {
    circle(pen, middle.x, middle.y, 0.75 * middle.radius);
    solid(pen);
  };
  const area = ({ pen }, box, middle, sprite, fill) => {
    pen.globalAlpha = 0.25;
    pen.fillRect(box.x, box.y, box.width, box.height);
    pen.globalAlpha = 1;
    pen.strokeStyle = fill;
    pen.strokeRect(box.x, box.y, box.width, box.height);
  };

  const SHAPES = {
    goal(brush, box, middle, sprite, fill) {
      const { pen, unit } = brush;
      area(brush, box, middle, sprite, fill);
      pen.beginPath();
      pen.rect(box.x, box.y, box.width, box.height);
      pen.clip();
      pen.beginPath();
      const step = unit / 4;
      for (let x = box.x - box.height; x < box.x + box.width; x += step) {
        pen.moveTo(x, box.y + box.height);
        pen.lineTo(x + box.height, box.y);
      }
      pen.lineWidth = Math.max(1, unit * 0.015);
      pen.stroke();
    },
    zone: area,
    spot({ pen, look, unit }, box, middle) {
      circle(pen, middle.x, middle.y, middle.radius / 2);
      pen.strokeStyle = look.palette.slate;
      pen.setLineDash([unit * 0.06, unit * 0.04]);
      pen.stroke();
    },
    robot({ pen }, box, middle, sprite) {
      const { x, y, radius } = middle;
      circle(pen, x, y, radius);
      solid(pen);
      const facing = HEADINGS[sprite.heading];
      if (facing) nose(pen, middle, facing);
    },
    human({ pen }, box, { x, y, radius }) {
      pen.beginPath();
      pen.ellipse(x, y, 0.65 * radius, radius, 0, 0, ROUND);
      solid(pen);
    },
    food: disc,
    plate: disc,
    tool({ pen }, box, { x, y, radius }) {
      const reach = 0.8 * radius;
      pen.beginPath();
      pen.moveTo(x, y - reach);
      pen.lineTo(x + reach, y);
      pen.lineTo(x, y + reach);
      pen.lineTo(x - reach, y);
      pen.closePath();
      solid(pen);
    },
    wall: rectangle,
    counter: rectangle,
    box: rounded,
    station: rounded,
  };

  const short = (value, digits = 1) =>
    value.toFixed(Math.abs(value) >= 100 ? 0 : digits).replace("-", "−");

  return { painter, fit, between, unpack, words, short, theme, FONT, shapes: Object.keys(SHAPES), GOOD, BAD };
})();
