// What replays and the playground share: teams on a stage, each with its picture, what is said to
// it, what everybody does and what it expects. A film is {name, world, agents, kinds, frames}.
const MavicShow = (() => {
  "use strict";

  const LINGER = 4; // ticks a verdict stays in sight
  const LINES = ["blue", "red", "green", "purple", "brown"];
  const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
  const BANDS = ["#e9eef5", "#f5ece4"];
  const MEANINGS = {
    goal: "goal", zone: "zone", spot: "waypoint", robot: "agent; the nose shows where it faces",
    human: "person", food: "food", plate: "plate", tool: "tool", wall: "wall", counter: "counter",
    box: "box", station: "station",
  };
  const ENDS = { solved: "The task is solved", ended: "The episode is over", "time is up": "Time is up" };
  const { words, short } = MavicPaint;

  function make(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "text") made.textContent = value;
      else if (key === "class") made.className = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const list = (names) =>
    names.length < 2 ? names.join("") : names.slice(0, -1).join(", ") + " and " + names.at(-1);
  const plural = (count, noun) => count + " " + noun + (count === 1 ? "" : "s");
  const frameOf = (film, index) => film.frames[Math.min(index, film.frames.length - 1)];

  // What stands in the bubble: {state, words, about, share of the time left}.
  function bubble(film, index) {
    const frame = frameOf(film, index);
    const asked = frame.instruction;
    const names = film.agents.map(words);
    if (frame.refused.length) {
      return { state: "broken", words: "“" + frame.refused.at(-1) + "”", about: ["cannot be done now, so it was not given"] };
    }
    if (asked) {
      const everybody = asked.agents.length === names.length;
      const to = everybody ? "to everybody" : "to " + list(asked.agents.map((i) => names[i]));
      const left = asked.left === null ? "until it is done or the episode ends" : plural(asked.left, "tick") + " left";
      const share = asked.left === null ? null : asked.left / (asked.left + asked.held);
      return { state: "active", words: "“" + asked.text + "”", about: ["kind: " + asked.kind, to, left], share };
    }
    const judged = (verdict) => (verdict.followed ? "✓ followed: " : "✗ not followed: ") + verdict.kind;
    if (frame.over) {
      const about = ["after " + plural(frame.time, "tick"), ...frame.verdicts.map(judged)];
      return { state: "none", words: ENDS[frame.over], about };
    }
    for (let i = Math.min(index, film.frames.length - 1); i >= Math.max(0, index - LINGER); i--) {
      const verdict = frameOf(film, i).verdicts.at(-1);
      if (verdict) {
        return { state: verdict.followed ? "followed" : "broken", words: judged(verdict), about: ["the instruction is over, back to the task"] };
      }
      if (frameOf(film, i).over) break;
    }
    return { state: "none", words: "No instruction", about: ["the team does its task"] };
  }

  // V(h, c) of every kind as lines; kinds that were asked for are bold.
  function seriesOf(look, film) {
    if (!film.frames.some((frame) => frame.values)) return [];
    const asked = [...new Set(film.frames.flatMap((f) => (f.instruction ? [f.instruction.kind] : [])))];
    return film.kinds.map((kind, number) => {
      const rank = asked.indexOf(kind);
      const bold = rank >= 0 || number === 0;
      const colour = number === 0 ? "#000000" : look.palette[rank >= 0 ? LINES[rank % LINES.length] : "slate"];
      const dash = rank >= 0 ? DASHES[(1 + rank) % DASHES.length] : [];
      const points = film.frames.map((frame) => (frame.values ? frame.values[number] : null));
      return { name: kind, points, colour, dash, bold };
    });
  }

  // When something was being asked, in alternating shades.
  function bandsOf(film) {
    const bands = [];
    film.frames.forEach((frame, i) => {
      const number = frame.instruction && frame.instruction.number;
      if (!number) return;
      const before = bands.at(-1);
      if (before && before.number === number && before.to >= i - 1) before.to = i;
      else bands.push({ number, from: i, to: i, colour: BANDS[number % BANDS.length] });
    });
    return bands;
  }

  function sample(line) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    for (const [key, value] of Object.entries({ width: 26, height: 8, "aria-hidden": "true" })) svg.setAttribute(key, value);
    const stroke = { d: "M0 4h26", stroke: line.colour, "stroke-width": line.bold ? 2.4 : 1, "stroke-dasharray": (line.dash || []).join(" ") };
    for (const [key, value] of Object.entries(stroke)) path.setAttribute(key, value);
    svg.append(path);
    return svg;
  }

  function describe(frame, now) {
    const doing = frame.agents.map((a) => words(a.name) + " " + words(a.macro) + (a.complies === null ? "" : a.complies ? ", complies" : ", disobeys"));
    return "Tick " + frame.time + ". " + now.words + ". " + doing.join("; ") + ".";
  }

  // The stage of some films. `options.live`: frames keep coming, the return is drawn too;
  // `options.seat`: the agent that the visitor plays.
  function board(look, stage, films, options = {}) {
    const painter = MavicPaint.painter(look);
    const several = films.length > 1;

    function rowOf(film, name, i) {
      const robot = film.frames[0].scene.sprites.filter((s) => s.shape === "robot")[i];
      const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
      if (robot) swatch.style.background = look.palette[robot.colour];
      const parts = { doing: make("span", { class: "doing" }), verdict: make("span") };
      const who = words(name) + (options.seat === i ? " (you)" : "");
      return { ...parts, item: make("li", {}, swatch, make("span", { class: "who", text: who }), parts.doing, parts.verdict) };
    }

    function viewOf(film) {
      const canvas = make("canvas", { role: "img" });
      const said = make("div", { class: "said" });
      const facts = Object.fromEntries(["Tick", "Return", "Followed"].map((name) => [name, make("dd")]));
      const rows = film.agents.map((name, i) => rowOf(film, name, i));
      const [event, notes] = [make("p", { class: "event" }), make("p", { class: "notes" })];
      const panel = make(
        "div", { class: "panel" },
        ...(several ? [make("h2", { text: film.name })] : []),
        make("dl", { class: "facts" }, ...Object.entries(facts).map(([name, dd]) => make("div", {}, make("dt", { text: name }), dd))),
        make("ul", { class: "agents" }, ...rows.map((row) => row.item)),
        event, notes,
      );
      const plot = make("canvas", { class: "chart", role: "img", "aria-label": "Expected return V(h, c) over time, one line per kind of instruction" });
      const keys = make("ul", { class: "keys" });
      const expects = make("div", {}, make("h3", { text: "What the team expects to earn, V(h, c)" }), plot, keys);
      const earned = make("canvas", { class: "chart low", role: "img", "aria-label": "Return over time" });
      if (options.live) panel.append(make("div", {}, make("h3", { text: "Return so far" }), earned));
      if (options.live || seriesOf(look, film).length) panel.append(expects);
      const picture = make("div", { class: "picture" });
      const score = make("span");
      if (several) picture.append(make("div", { class: "title" }, make("h2", { text: film.name }), score));
      picture.append(said, canvas);
      stage.append(make("section", { class: "film", "aria-label": film.name }, picture, panel));
      const view = { film, canvas, picture, said, score, facts, rows, event, notes, plot, keys, earned, expects, series: [], named: "", unit: 0 };
      trace(view);
      return view;
    }

    // What the charts show; in a live film the lines grow.
    function trace(view) {
      view.series = seriesOf(look, view.film);
      view.expects.hidden = !view.series.length;
      const named = view.series.filter((line) => line.bold);
      const names = named.map((line) => line.name).join(" ");
      if (names === view.named) return;
      view.named = names;
      const others = view.series.length > named.length ? [{ name: "other kinds", colour: look.palette.slate }] : [];
      const label = (line) => (line.name === "none" ? "no instruction" : line.name);
      view.keys.replaceChildren(...[...named, ...others].map((line) => make("li", {}, sample(line), label(line))));
    }

    function chart(view, index, last) {
      const at = Math.min(index, view.film.frames.length - 1);
      const bands = options.live ? bandsOf(view.film) : [];
      if (view.series.length) MavicPaint.chart(view.plot, look, view.series, at, last, bands);
      if (!options.live) return;
      const points = view.film.frames.map((frame) => frame.earned);
      const starts = view.film.frames.flatMap((frame, i) => (frame.time === 0 ? [i] : []));
      MavicPaint.chart(view.earned, look, [{ name: "return", points, colour: "#000000", bold: true, starts }], at, last, bands);
    }

    function tell(view, index) {
      const { film, said, facts, rows } = view;
      const frame = frameOf(film, index);
      const now = bubble(film, index);
      said.dataset.state = now.state;
      said.replaceChildren(
        make("p", { class: "words", text: now.words }),
        make("p", { class: "about" }, ...now.about.map((text) => make("span", { text }))),
      );
      if (now.share != null) {
        const fill = make("i");
        fill.style.width = 100 * now.share + "%";
        said.append(make("div", { class: "left", "aria-hidden": "true" }, fill));
      }
      const { followed, judged } = film.totals || frame;
      facts["Tick"].textContent = frame.time;
      facts["Return"].textContent = short(frame.earned);
      facts["Followed"].textContent = judged ? followed + " of " + judged : "–";
      if (film.totals && film.totals.given) facts["Followed"].append(" ", make("small", { text: film.totals.given + " given" }));
      const counted = judged ? " · followed " + followed + " of " + judged : "";
      view.score.textContent = "return " + short(frame.earned) + counted;
      frame.agents.forEach((agent, i) => {
        const { doing, verdict } = rows[i];
        doing.className = agent.decided ? "doing decided" : "doing";
        doing.replaceChildren(frame.over ? "–" : words(agent.macro));
        if (agent.holds) doing.append(" ", make("small", { text: "holds " + agent.holds }));
        if (agent.decided && !options.live) doing.append(" ", make("small", { text: "decided now" }));
        verdict.className = agent.complies === null ? "" : "chip " + (agent.complies ? "good" : "bad");
        verdict.textContent = agent.complies === null ? "" : agent.complies ? "✓ complies" : "✗ disobeys";
      });
      let i = Math.min(index, film.frames.length - 1);
      while (i > 0 && !film.frames[i].events.length && film.frames[i].time > 0) i--; // of this episode
      const happened = film.frames[i].events;
      view.event.textContent = happened.length ? "Last event: " + happened.map(words).join(", ") + " (tick " + film.frames[i].time + ")" : "";
      const known = frame.agents.map((agent) => agent.name + ": " + agent.macro);
      view.notes.textContent = frame.scene.notes.filter((note) => !known.includes(note)).join("\n");
      view.canvas.setAttribute("aria-label", describe(frame, now));
    }

    // What is to be told aloud: the bubbles' words.
    const spoken = (index) =>
      films.map((film) => (several ? film.name + ": " : "") + bubble(film, index).words).join(". ");

    // Give each picture all the room there is above `bar`.
    function measure(bar) {
      const least = innerWidth >= 900 ? 240 : 300;
      for (const view of views) {
        const style = getComputedStyle(view.picture);
        const room = view.picture.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        const top = view.canvas.getBoundingClientRect().top + scrollY;
        const high = Math.max(least, innerHeight - bar.offsetHeight - top - 24);
        view.unit = MavicPaint.fit(view.canvas, view.film.frames[0].scene, room - 1, high);
        view.said.style.maxWidth = Math.max(340, view.canvas.clientWidth) + "px";
      }
    }

    function paint(view, scene, frame) {
      painter.draw(view.canvas, scene, view.unit, frame.over ? [] : frame.agents);
    }

    function legend(last) {
      const shapes = new Map();
      for (const film of films) {
        for (const frame of film.frames) {
          for (const sprite of frame.scene.sprites) if (!shapes.has(sprite.shape)) shapes.set(sprite.shape, sprite);
        }
      }
      const samples = [];
      const item = (scene, agents, text) => {
        const canvas = make("canvas", { "aria-hidden": "true" });
        samples.push({ canvas, scene, agents });
        return make("li", {}, canvas, make("span", { text }));
      };
      const robot = { shape: "robot", x: 0, y: 0, width: 1, height: 1, label: "", colour: "grey", heading: "", holds: "" };
      const items = [...shapes.values()].map((sprite) => {
        const only = { ...sprite, x: 0, y: 0, width: 1, height: 1, label: "", holds: "" };
        return item({ width: 1, height: 1, sprites: [only] }, [], MEANINGS[sprite.shape] || sprite.shape);
      });
      const doing = (decided, complies, macro) => [{ macro, decided, complies }];
      const roomy = { width: 2.4, height: 1.4, sprites: [{ ...robot, x: 0.7, y: 0 }] };
      items.push(
        item(roomy, doing(true, null, "go"), "has decided just now"),
        item(roomy, doing(false, null, "go"), "goes on with its macro"),
        item(roomy, doing(false, true, "go"), "does what it is told"),
        item(roomy, doing(false, false, "go"), "disobeys"),
      );
      const loaded = { ...roomy, sprites: [{ ...robot, x: 0.7, y: 0.3, holds: "cup" }] };
      if (options.live || films.some((film) => film.frames.some((f) => f.scene.sprites.some((s) => s.holds)))) items.push(item(loaded, [], "carries something"));
      if (last) items.push(make("li", { text: last }));
      const box = make("details", { class: "key" }, make("summary", { text: "Legend" }), make("ul", { class: "legend" }, ...items));
      box.open = innerWidth >= 560;
      stage.append(box);
      for (const { canvas, scene, agents } of samples) {
        const unit = MavicPaint.fit(canvas, scene, 36 * scene.width, 36 * scene.height);
        painter.draw(canvas, scene, unit, agents, false);
      }
    }

    document.body.dataset.films = films.length;
    const views = films.map(viewOf);
    return { views, tell, trace, chart, paint, measure, legend, spoken };
  }

  return { board, bubble, frameOf, make, list, plural };
})();
