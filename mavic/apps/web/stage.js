// What replays and the playground share. For each team it shows the scene, the instruction, what each agent does, and
// the team's values. A recording is {name, world, agents, kinds, frames}.
const MavicStage = (() => {
  "use strict";

  const LINGER = 4; // ticks for which a verdict is shown
  const LINES = ["blue", "red", "green", "purple", "brown"];
  const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
  const PATIENCE = 25; // ticks without a step done after which the work counts as stalled
  const LEAKS = 0.2; // share by which a team must expect too little
  const LEAST = 150; // CSS pixels of a picture's height where the screen has no more
  const RESTS = ["STAY", "WAIT"];
  const MEANINGS = {
    goal: "goal", zone: "zone", spot: "waypoint", robot: "agent",
    human: "person", food: "food", plate: "plate", tool: "tool", wall: "wall", counter: "counter",
    box: "box", station: "station",
  };
  const PICTURES = {
    board: "board, to chop on", oven: "oven", blender: "blender", plate: "plate", hatch: "hatch: the dish goes out here",
    crate: "box", person: "person at work", shelf: "shelf with a tool", bowl: "bowl, before it is cooked",
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
  const doingOf = (agent) => agent.doing || words(agent.macro);
  // What people call the agents of a recording.
  function namesOf(recording) {
    const robots = recording.frames.length ? recording.frames[0].scene.sprites.filter((s) => s.shape === "robot") : [];
    const given = recording.agent_words || [];
    return recording.agents.map((name, i) => given[i] || (robots[i] && robots[i].name) || words(name));
  }
  // What people call a kind of instruction.
  const kindWord = (recording, kind) => (recording.kind_words || [])[recording.kinds.indexOf(kind)] || words(kind);
  const frameOf = (recording, index) => recording.frames[Math.min(index, recording.frames.length - 1)];

  // The content of the bubble: {state, words, about, share of the time left}.
  function bubble(recording, index) {
    const frame = frameOf(recording, index);
    const asked = frame.instruction;
    const names = namesOf(recording);
    const called = (kind) => kindWord(recording, kind);
    if (frame.refused.length) {
      return { state: "broken", words: "“" + frame.refused.at(-1) + "”", about: ["cannot be done now, so it was not given"] };
    }
    if (asked) {
      const second = frame.also;
      const toOf = ({ agents }) => (agents.length === names.length ? "to everybody" : "to " + list(agents.map((i) => names[i])));
      const same = !second || toOf(asked) === toOf(second);
      const to = same ? toOf(asked) : "the first " + toOf(asked) + ", the second " + toOf(second);
      const left = asked.left !== null ? plural(asked.left, "move") + " left" : recording.standing ? "until you end it" : "until it is done or the episode ends";
      const share = asked.left === null ? null : asked.left / (asked.left + asked.held);
      const kinds = called(asked.kind) + (second ? " · " + called(second.kind) : "");
      return { state: "active", words: "“" + asked.text + "”" + (second ? " and “" + second.text + "”" : ""), about: [to, left, kinds], share };
    }
    const verdictWords = (verdict) => (verdict.followed ? "✓ followed: " : "✗ not followed: ") + called(verdict.kind);
    if (frame.over) {
      const about = ["after " + plural(frame.time, "move"), ...frame.verdicts.map(verdictWords)];
      return { state: "none", words: ENDS[frame.over], about };
    }
    for (let i = Math.min(index, recording.frames.length - 1); i >= Math.max(0, index - LINGER); i--) {
      const verdict = frameOf(recording, i).verdicts.at(-1);
      if (verdict) {
        return { state: verdict.followed ? "followed" : "broken", words: verdictWords(verdict), about: ["the instruction is over, back to the task"] };
      }
      if (frameOf(recording, i).over) break;
    }
    return { state: "none", words: "No instruction", about: ["the team does its task"] };
  }

  // Whether the team's values leak: it expects less than it earns although it is told nothing.
  function leakOf({ leak }) {
    if (!leak) return "";
    const [expected, earned] = leak;
    const numbers = "Told nothing, this team expects " + short(expected, 0) + " on average and then earns " + short(earned, 0) + " (discounted).";
    const leaks = earned - expected > LEAKS * Math.max(Math.abs(earned), Math.abs(expected));
    return leaks ? "A leak: " + numbers[0].toLowerCase() + numbers.slice(1) + " It reckons as if it were still forbidden something." : "No leak: " + numbers[0].toLowerCase() + numbers.slice(1);
  }

  const doneOf = (frame) => (frame.scene.steps || []).reduce((sum, step) => sum + step.done, 0);

  // What obeying does to the work: {state, words}. The work gets on while steps are done now and then.
  function workOf(recording, index) {
    const frames = recording.frames;
    const at = Math.min(index, frames.length - 1);
    const frame = frames[at];
    if (frame.over) return { state: "over", words: ENDS[frame.over] };
    if (at === 0 || frame.time === 0) return { state: "works", words: "begins" };
    let quiet = 0;
    while (at - quiet > 0 && frames[at - quiet].time > 0 && doneOf(frames[at - quiet - 1]) === doneOf(frame)) quiet++;
    const resting = frame.agents.every((agent) => RESTS.includes(agent.macro));
    const works = !resting && (quiet < PATIENCE || !(frame.scene.steps || []).length);
    const asked = frame.instruction;
    if (!asked) return { state: works ? "works" : "stalled", words: works ? "works" : "stalled" };
    const complies = frame.agents.every((agent) => agent.complies !== false);
    if (complies && asked.replaces && !works) return { state: "waits", words: "complies; the work waits, as asked" };
    const said = complies ? (works ? "complies and works" : "complies, stalled") : works ? "does not comply, works" : "does not comply, stalled";
    return { state: !complies ? "disobeys" : works ? "both" : "stalled", words: said };
  }

  // V(h, c) of each kind as a line; kinds that were given are bold.
  function seriesOf(look, recording) {
    if (!recording.frames.some((frame) => frame.values)) return [];
    const asked = [...new Set(recording.frames.flatMap((f) => (f.instruction ? [f.instruction.kind] : [])))];
    return recording.kinds.map((kind, number) => {
      const rank = asked.indexOf(kind);
      const bold = rank >= 0 || number === 0;
      const colour = number === 0 ? "ink" : lineColour(look, rank >= 0 ? LINES[rank % LINES.length] : "slate");
      const dash = rank >= 0 ? DASHES[(1 + rank) % DASHES.length] : [];
      const points = recording.frames.map((frame) => (frame.values ? frame.values[number] : null));
      return { name: kind, points, colour, dash, bold };
    });
  }

  const lineColour = (look, name) => (MavicPaint.theme().series || look.palette)[name];

  // The spans of the instructions, in alternating shades.
  function bandsOf(recording) {
    const bands = [];
    recording.frames.forEach((frame, i) => {
      const number = frame.instruction && frame.instruction.number;
      if (!number) return;
      const before = bands.at(-1);
      if (before && before.number === number && before.to >= i - 1) before.to = i;
      else bands.push({ number, from: i, to: i, colour: MavicPaint.theme().bands[number % 2] });
    });
    return bands;
  }

  function sample(line) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    for (const [key, value] of Object.entries({ width: 26, height: 8, "aria-hidden": "true" })) svg.setAttribute(key, value);
    const stroke = { d: "M0 4h26", stroke: line.colour === "ink" ? "currentColor" : line.colour, "stroke-width": line.bold ? 2.4 : 1, "stroke-dasharray": (line.dash || []).join(" ") };
    for (const [key, value] of Object.entries(stroke)) path.setAttribute(key, value);
    svg.append(path);
    return svg;
  }

  function describe(frame, now, names) {
    const doing = frame.agents.map((a, i) => names[i] + " " + doingOf(a) + (a.complies === null ? "" : a.complies ? ", complies" : ", disobeys"));
    return "Move " + frame.time + ". " + now.words + ". " + doing.join("; ") + ".";
  }

  // Shows recordings side by side. `options.live`: frames keep coming, and the return is drawn too.
  // `options.seat`: the agent that the visitor drives. `options.pick`: is called with an agent whose name was clicked; `options.touch` with what was clicked in the picture.
  function board(look, stage, recordings, options = {}) {
    const painter = MavicPaint.painter(look);
    const several = recordings.length > 1;

    function rowOf(recording, name, i) {
      const robot = recording.frames[0].scene.sprites.filter((s) => s.shape === "robot")[i];
      const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
      if (robot) swatch.style.background = look.palette[robot.colour];
      const parts = { doing: make("span", { class: "doing" }), verdict: make("span") };
      const text = name + (options.seat === i ? " (you)" : "");
      const who = options.pick ? make("button", { type: "button", class: "who", text, "aria-pressed": "false", title: "Talk to " + name + " alone" }) : make("span", { class: "who", text });
      if (options.pick) who.addEventListener("click", () => options.pick(i));
      return { ...parts, who, item: make("li", {}, swatch, who, parts.doing, parts.verdict) };
    }

    function viewOf(recording) {
      const canvas = make("canvas", { role: "img" });
      const said = make("div", { class: "said" });
      const facts = Object.fromEntries(["Move", "Return", "Followed"].map((name) => [name, make("dd")]));
      const rows = namesOf(recording).map((name, i) => rowOf(recording, name, i));
      const [strip, work] = [make("ol", { class: "strip", "aria-label": "The work" }), make("span", { class: "work" })];
      const [event, notes] = [make("p", { class: "event" }), make("p", { class: "notes" })];
      const panel = make("div", { class: "panel" }, ...(several ? [make("h2", { text: recording.name })] : []), make("ul", { class: "agents" }, ...rows.map((row) => row.item)), event);
      const plot = make("canvas", { class: "chart", role: "img", "aria-label": "Expected return V(h, c) over time, one line per kind of instruction" });
      const keys = make("ul", { class: "keys" });
      const leak = make("p", { class: "leak", text: leakOf(recording) });
      const expects = make("div", {}, make("h3", { text: "What the team expects to earn, V(h, c)" }), plot, keys, leak);
      const earned = make("canvas", { class: "chart low", role: "img", "aria-label": "Return over time" });
      const how = make(
        "details", { class: "how" }, make("summary", { text: "How it works" }),
        ...(recording.about ? [make("p", { class: "sort", text: recording.about })] : []),
        make("dl", { class: "facts" }, ...Object.entries(facts).map(([name, dd]) => make("div", {}, make("dt", { text: name }), dd))),
        ...(options.live ? [make("div", {}, make("h3", { text: "Return so far" }), earned)] : []),
        ...(options.live || seriesOf(look, recording).length ? [expects] : []),
        notes,
      );
      how.addEventListener("toggle", () => how.open && options.unfolded && options.unfolded());
      panel.append(how);
      const picture = make("div", { class: "picture" });
      const score = make("span");
      const canvasBox = make("div", { class: "frame" }, canvas);
      picture.append(make("div", { class: "title" }, make("h2", { text: recording.name }), work, score), said, strip, canvasBox);
      if (options.touch) canvas.addEventListener("click", (event) => touchAt(view, event));
      stage.append(make("section", { class: "recording", "aria-label": recording.name }, picture, panel));
      const view = { recording, canvas, picture, said, score, strip, work, stripped: "", facts, rows, event, notes, plot, keys, how, panel, earned, expects, series: [], named: "", unit: 0, canvasBox };
      trace(view);
      return view;
    }

    // Says which agent or thing was clicked.
    function touchAt(view, event) {
      const cell = view.canvas.clientWidth / view.recording.frames[0].scene.width;
      const [x, y] = [event.offsetX / cell, event.offsetY / cell];
      const sprites = view.recording.frames.at(-1).scene.sprites;
      const robots = sprites.filter((s) => s.shape === "robot");
      const far = robots.map((robot) => Math.hypot(robot.x + robot.width / 2 - x, robot.y + robot.height / 2 - y));
      const nearest = far.indexOf(Math.min(...far));
      const inside = (s) => s.name && x >= s.x && x < s.x + s.width && y >= s.y && y < s.y + s.height;
      const thing = sprites.filter((s) => s.shape !== "robot").findLast(inside);
      if (far[nearest] < (thing ? 0.5 : 0.75) && nearest < view.recording.agents.length) options.touch({ agent: nearest }, event);
      else if (thing) options.touch({ thing: thing.name }, event);
    }

    // Shows the work step by step.
    function tellWork(view, index) {
      const frame = frameOf(view.recording, index);
      const now = workOf(view.recording, index);
      view.work.dataset.state = now.state;
      view.work.textContent = now.words;
      const steps = (frame.scene.steps || []).map((step) => (frame.over === "solved" && frame.scene.steps.at(-1).of === 1 ? { ...step, done: step.of } : step));
      const key = JSON.stringify(steps);
      if (key === view.stripped) return;
      view.stripped = key;
      view.strip.replaceChildren(...steps.map((step) => {
        const fill = make("i");
        fill.style.width = (100 * step.done) / step.of + "%";
        const done = step.done >= step.of;
        const count = step.done && !done ? " " + step.done + "/" + step.of : "";
        return make("li", { class: done ? "done" : "", "aria-label": step.name + ": " + step.done + " of " + step.of }, fill, make("span", { text: (done ? "✓ " : "") + step.name + count }));
      }));
    }

    // Updates the lines of the charts; in a live recording they grow.
    function trace(view) {
      view.series = seriesOf(look, view.recording);
      view.expects.hidden = !view.series.length;
      const named = view.series.filter((line) => line.bold);
      const names = named.map((line) => line.name).join(" ");
      if (names === view.named) return;
      view.named = names;
      const others = view.series.length > named.length ? [{ name: "other kinds", colour: lineColour(look, "slate") }] : [];
      const label = (line) => (line.name === "none" ? "no instruction" : kindWord(view.recording, line.name));
      view.keys.replaceChildren(...[...named, ...others].map((line) => make("li", {}, sample(line), label(line))));
    }

    const earnedOf = (recording) => {
      const starts = recording.frames.flatMap((frame, i) => (frame.time === 0 ? [i] : []));
      return [{ name: "return", points: recording.frames.map((frame) => frame.earned), colour: "ink", bold: true, starts }];
    };

    // Draws a team's charts on the scale of all teams, if they are unfolded.
    function chart(view, index, last) {
      if (!view.how.open) return;
      const at = Math.min(index, view.recording.frames.length - 1);
      const bands = options.live ? bandsOf(view.recording) : [];
      const scale = MavicChart.rangeOf(views.map((other) => other.series));
      if (view.series.length) MavicChart.draw(view.plot, view.series, at, last, bands, scale);
      if (!options.live) return;
      const scaled = MavicChart.rangeOf(recordings.map(earnedOf));
      MavicChart.draw(view.earned, earnedOf(view.recording), at, last, bands, scaled);
    }

    function tell(view, index) {
      const { recording, said, facts, rows } = view;
      const frame = frameOf(recording, index);
      const now = bubble(recording, index);
      said.dataset.state = now.state;
      said.replaceChildren(
        make("p", { class: "words", text: now.words, title: now.words }),
        make("p", { class: "about" }, ...now.about.map((text, i) => make("span", { text: (i ? " · " : "") + text }))),
      );
      if (now.share != null) {
        const fill = make("i");
        fill.style.width = 100 * now.share + "%";
        said.append(make("div", { class: "left", "aria-hidden": "true" }, fill));
      }
      const { followed, judged } = recording.totals || frame;
      facts["Move"].textContent = frame.time;
      facts["Return"].textContent = short(frame.earned);
      facts["Followed"].textContent = judged ? followed + " of " + judged : "–";
      if (recording.totals && recording.totals.given) facts["Followed"].append(" ", make("small", { text: recording.totals.given + " given" }));
      view.score.textContent = judged ? "followed " + followed + " of " + judged : "";
      frame.agents.forEach((agent, i) => {
        const { doing, verdict } = rows[i];
        doing.className = agent.decided ? "doing decided" : "doing";
        doing.replaceChildren(frame.over ? "–" : doingOf(agent));
        if (agent.holds) doing.append(" ", make("small", { text: "holds " + agent.holds }));
        if (agent.decided && !options.live) doing.append(" ", make("small", { text: "decided now" }));
        verdict.className = agent.complies === null ? "" : "chip " + (agent.complies ? "good" : "bad");
        verdict.textContent = agent.complies === null ? "" : agent.complies ? "✓ complies" : "✗ disobeys";
      });
      tellWork(view, index);
      let i = Math.min(index, recording.frames.length - 1);
      while (i > 0 && !recording.frames[i].events.length && recording.frames[i].time > 0) i--; // of this episode
      const happened = recording.frames[i].events;
      view.event.textContent = happened.length ? "Last event: " + happened.map(words).join(", ") + " (move " + recording.frames[i].time + ")" : "";
      const names = namesOf(recording);
      const known = frame.agents.map((agent, i) => names[i] + ": " + doingOf(agent));
      view.notes.textContent = frame.scene.notes.filter((note) => !known.includes(note)).join("\n");
      view.canvas.setAttribute("aria-label", describe(frame, now, namesOf(recording)));
    }

    // What a screen reader says: the words of the bubbles.
    const spoken = (index) =>
      recordings.map((recording) => (several ? recording.name + ": " : "") + bubble(recording, index).words).join(". ");

    // Gives each picture all the room above `bar`, so that the whole of it is in sight.
    function measure(bar) {
      for (const view of views) {
        const { width, height } = view.recording.frames[0].scene;
        const top = view.canvasBox.getBoundingClientRect().top + scrollY;
        const below = innerHeight - bar.offsetHeight - top - 8;
        const room = several && innerWidth < 560 ? below : Math.max(below, LEAST);
        view.unit = MavicPaint.fit(view.canvas, { width, height }, view.canvasBox.clientWidth - 1, room);
      }
    }

    function paint(view, scene, frame) {
      const holding = [frame.instruction, frame.also].filter(Boolean);
      const [forbids, wants] = ["forbids", "wants"].map((how) => holding.flatMap((one) => one[how] || []));
      painter.draw(view.canvas, scene, view.unit, frame.over ? [] : frame.agents, true, { forbids, wants, picked });
    }

    // Shows which agents are addressed.
    let picked = [];
    function address(agents) {
      picked = agents;
      for (const view of views) view.rows.forEach((row, i) => row.who.setAttribute("aria-pressed", String(picked.includes(i))));
    }

    function legend(last) {
      const shapes = new Map(); // one sample of each picture, or shape
      for (const recording of recordings) {
        for (const frame of recording.frames) {
          for (const sprite of frame.scene.sprites) {
            const sort = MavicIcons.known(sprite.picture) ? sprite.picture.split("-")[0] : sprite.shape;
            if (!shapes.has(sort)) shapes.set(sort, sprite);
          }
        }
      }
      const samples = [];
      const item = (scene, agents, text) => {
        const canvas = make("canvas", { "aria-hidden": "true" });
        samples.push({ canvas, scene, agents });
        return make("li", {}, canvas, make("span", { text }));
      };
      const robot = { shape: "robot", x: 0, y: 0, width: 1, height: 1, label: "", colour: "grey", heading: "", holds: "" };
      if (recordings.some((r) => r.frames.some((f) => f.scene.sprites.some((s) => (s.name || "").startsWith("left"))))) last = "Left and right are as an agent sees them that faces the things." + (last ? " " + last : "");
      const items = [...shapes.entries()].map(([sort, sprite]) => {
        const only = { ...sprite, x: 0, y: 0, width: 1, height: 1, label: "", holds: "", carries: "", name: "" };
        const meaning = PICTURES[sort] || MEANINGS[sort] || sort;
        return item({ width: 1, height: 1, sprites: [only] }, [], meaning + (sprite.heading ? "; the nose shows where it faces" : ""));
      });
      const thing = { ...robot, shape: "zone", colour: "grey", name: "it" };
      const marked = (text, how) => {
        const made = item({ width: 1, height: 1, sprites: [thing] }, [], text);
        samples.at(-1).marks = { [how]: ["it"] };
        return made;
      };
      const doing = (decided, complies, macro) => [{ macro, decided, complies }];
      const roomy = { width: 2.4, height: 1.4, sprites: [{ ...robot, x: 0.7, y: 0 }] };
      items.push(
        item(roomy, doing(true, null, "go"), "has decided just now"),
        item(roomy, doing(false, null, "go"), "goes on with what it does"),
        item(roomy, doing(false, true, "go"), "complies with the instruction"),
        item(roomy, doing(false, false, "go"), "does not comply"),
        marked("must not be used now", "forbids"),
        marked("is asked for now", "wants"),
      );
      const loaded = { ...roomy, sprites: [{ ...robot, x: 0.7, y: 0.3, holds: "cup" }] };
      if (options.live || recordings.some((recording) => recording.frames.some((f) => f.scene.sprites.some((s) => s.holds)))) items.push(item(loaded, [], "carries something"));
      if (last) items.push(make("li", { text: last }));
      const box = make("details", { class: "key" }, make("summary", { text: "Legend" }), make("ul", { class: "legend" }, ...items));
      box.open = innerWidth >= 560;
      stage.append(box);
      for (const { canvas, scene, agents, marks } of samples) {
        const unit = MavicPaint.fit(canvas, scene, 36 * scene.width, 36 * scene.height);
        painter.draw(canvas, scene, unit, agents, false, marks);
      }
    }

    document.body.dataset.recordings = recordings.length;
    const views = recordings.map(viewOf);
    return { views, tell, trace, chart, paint, measure, legend, spoken, address };
  }

  return { board, bubble, workOf, frameOf, make, list, plural, kindWord, RESTS };
})();
