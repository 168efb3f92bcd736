"use strict";
// The playground's page. All that comes from the server is data: it is drawn or set as text, never as markup.
(() => {
  const KEPT = 150; // frames in the charts
  const GLIDE = 220; // milliseconds, at most, in which sprites move to their next places
  const SUGGESTIONS = 8;
  const PAST = 40; // sentences that are remembered
  const PLAY = "M5 2.5v15l12-7.5z";
  const PAUSE = "M4 3h4v14H4zM12 3h4v14h-4z";
  const MOVES = { ArrowUp: "UP", ArrowLeft: "LEFT", ArrowDown: "DOWN", ArrowRight: "RIGHT" };
  const SIGNS = { UP: "↑", LEFT: "←", DOWN: "↓", RIGHT: "→" };
  const LETTERS = "asdfghjklqwtyuiopzxcvbnm1234567890"; // r, e, /, . and space are taken
  const { words, between } = MavicPaint;
  const { make, plural, list } = MavicStage;
  const element = (id) => document.getElementById(id);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const [text, options, answer] = ["text", "list", "answer"].map(element);
  const state = {
    socket: null, hello: null, opened: null, board: null, recordings: [], playing: true, speed: 3, past: [],
    recalled: -1, picked: -1, keys: {}, arrived: 0, span: 0, retries: 0, last: null, wish: null,
  };

  const connected = () => Boolean(state.socket) && state.socket.readyState === WebSocket.OPEN;

  function send(message) {
    if (connected()) state.socket.send(JSON.stringify(message));
  }

  function status(words_, bad) {
    element("status").textContent = words_;
    element("status").toggleAttribute("data-bad", Boolean(bad));
  }

  // ── the connection to the server

  function connect() {
    const scheme = location.protocol === "https:" ? "wss://" : "ws://";
    const socket = new WebSocket(scheme + location.host + "/live");
    state.socket = socket;
    socket.addEventListener("message", (event) => receive(JSON.parse(event.data)));
    socket.addEventListener("close", (event) => {
      for (const id of ["save-html", "save-gif"]) element(id).removeAttribute("href");
      if (event.code === 1013) return;
      const wait = Math.min(8, 2 ** state.retries);
      state.retries += 1;
      status("The connection is lost; trying again in " + plural(wait, "second") + "…", true);
      setTimeout(connect, 1000 * wait);
    });
  }

  function receive(message) {
    const acts = { hello, opened, frame, understood, clock: tellClock };
    if (message.type in acts) acts[message.type](message);
    else if (message.type === "status") status(message.text);
    else if (message.type === "full") status(message.text, true);
    else if (message.type === "error") {
      say("error", message.text);
      if (state.wish) choose(state.last); // what was asked for could not be opened
      state.wish = null;
    }
  }

  function hello(message) {
    state.hello = message;
    state.retries = 0;
    status("");
    fill("world", message.listing.map(({ world }) => [world, words(world)]));
    const last = state.wish || state.last;
    if (last && message.listing.some(({ world }) => world === last.world)) element("world").value = last.world;
    chooseWorld(last);
    if (message.words) say("error", "Only the phrases in the list are understood here: " + message.words);
  }

  function fill(id, choices) {
    element(id).replaceChildren(...choices.map(([value, label]) => make("option", { value, text: label })));
  }

  function chooseWorld(last) {
    fillTeams();
    choose(last);
    open();
  }

  function fillTeams() {
    const world = element("world").value;
    const { teams, agents, guest } = state.hello.listing.find((entry) => entry.world === world);
    fill("team", teams.map((name) => [name, name]));
    fill("against", [["", "nobody"], ...teams.map((name) => [name, name])]);
    fill("seat", [["", "nobody"], ...agents.map((name, i) => [String(i), words(name)]), ...(guest ? [["guest", "one more agent"]] : [])]);
  }

  // Shows what is open in the boxes.
  function choose(last) {
    if (last && state.hello.listing.some(({ world }) => world === last.world)) {
      if (element("world").value !== last.world) {
        element("world").value = last.world;
        fillTeams();
      }
      element("setup-label").textContent = words(last.world) + ": " + last.teams.join(" and ");
      const has = (id, value) => [...element(id).options].some((option) => option.value === value);
      for (const [id, value] of [["team", last.teams[0]], ["against", last.teams[1] || ""], ["seat", last.seat === null ? "" : String(last.seat)]]) {
        if (has(id, value)) element(id).value = value;
      }
    }
  }

  function seed() {
    const value = Math.floor(Number(element("seed").value));
    return Number.isFinite(value) ? Math.max(0, Math.min(2147483647, value)) : 1;
  }

  function open() {
    const seat = element("seat").value;
    const teams = [element("team").value, element("against").value].filter(Boolean);
    const wish = { world: element("world").value, teams, seat: seat === "" ? null : seat === "guest" ? seat : Number(seat) };
    state.wish = wish;
    element("setup-label").textContent = words(wish.world) + ": " + teams.join(" and ");
    send({ do: "open", seed: seed(), ...wish });
  }

  function opened(message) {
    state.opened = message;
    state.last = state.wish || state.last;
    state.wish = null;
    state.board = null;
    state.recordings = message.recordings.map((recording) => ({ ...recording, world: message.world, frames: [], totals: null }));
    element("stage").replaceChildren();
    answer.replaceChildren();
    delete answer.dataset.state;
    scopes(message);
    asks(message.asks);
    pad(message);
    for (const ending of ["html", "gif"]) element("save-" + ending).href = "/recording/" + state.hello.ticket + "." + ending;
  }

  // ── frames

  function frame(message) {
    if (!state.opened) return;
    message.frames.forEach((one, i) => {
      const recording = state.recordings[i];
      if (recording.still) recording.frames.pop(); // a picture that only stood in for this one
      recording.still = message.still;
      recording.frames.push(one);
      if (recording.frames.length > KEPT) recording.frames.shift();
      recording.totals = message.totals[i];
    });
    if (!state.board) {
      const options_ = { live: true, seat: state.opened.seat };
      state.board = MavicStage.board(state.hello.look, element("stage"), state.recordings, options_);
      state.board.legend("In the charts, shaded: while something was asked.");
      state.board.measure(element("bar"));
    }
    const now = performance.now();
    state.span = calm.matches ? 0 : Math.min(GLIDE, 1000 / state.speed);
    state.arrived = now;
    const last = state.recordings[0].frames.length - 1;
    for (const view of state.board.views) {
      state.board.tell(view, last);
      state.board.trace(view);
      state.board.chart(view, last, Math.max(last, 30));
    }
    element("seed").dataset.now = message.seed;
    const { time } = state.recordings[0].frames[last];
    element("clock").textContent = "seed " + message.seed + ", tick " + time;
    const active = state.recordings.some((recording) => recording.frames[last].instruction);
    element("end").disabled = !active;
    noteVerdicts(message);
    announce(last);
    keysNow(state.recordings[0].frames[last]);
    requestAnimationFrame(draw);
  }

  // Sprites glide from their places in the last tick to their present ones.
  function draw() {
    if (!state.board) return;
    const share = state.span ? Math.min(1, (performance.now() - state.arrived) / state.span) : 1;
    for (const view of state.board.views) {
      const frames = view.recording.frames;
      const now = frames.at(-1);
      const before = frames.at(-2);
      const moves = before && !before.over && share < 1;
      const scene = moves ? between(now.scene, before.scene, 1 - share) : now.scene;
      state.board.paint(view, scene, now);
    }
    if (share < 1) requestAnimationFrame(draw);
  }

  let announced = "";
  function announce(index) {
    const spoken = state.board.spoken(index);
    if (spoken !== announced) element("spoken").textContent = spoken;
    announced = spoken;
  }

  function tellClock(message) {
    state.playing = message.playing;
    state.speed = message.speed;
    element("face").setAttribute("d", message.playing ? PAUSE : PLAY);
    element("play").setAttribute("aria-label", message.playing ? "Pause" : "Play");
    element("speed").value = String(message.speed);
    element("again").checked = message.again;
  }

  // ── words

  function say(kind, ...parts) {
    answer.dataset.state = kind;
    answer.replaceChildren(...parts);
  }

  function understood(message) {
    const percent = Math.round(100 * message.probability) + " %";
    if (message.unsure) {
      const meant = message.closest.map((kind) => state.opened.asks.find((ask) => ask.kind === kind)).filter(Boolean);
      const buttons = meant.map((ask) => {
        const button = make("button", { type: "button", text: ask.phrases[0], title: ask.meaning });
        button.addEventListener("click", () => speak(ask.phrases[0]));
        return button;
      });
      const why = message.note ? " (" + message.note + ")" : " (best guess: " + message.kind + ", " + percent + ")";
      say("unsure", make("span", {}, make("b", { text: "I'm not sure what you mean by “" + brief(message.text) + "”." }), why),
        ...(buttons.length ? [make("span", { text: "Did you mean" }), make("span", { class: "closest" }, ...buttons)] : []));
      remember({ text: message.text, kind: "not understood", state: "unsure" });
      return;
    }
    const ask = state.opened.asks.find(({ kind }) => kind === message.kind);
    const near = message.nearest[0];
    const parts = [make("span", {}, "Understood: ", make("b", { text: message.kind }), " (" + percent + ")")];
    if (ask) parts.push(make("span", { class: "quiet", text: ask.meaning }));
    if (near) parts.push(make("span", { class: "quiet", text: "nearest phrase: “" + near.text + "”" }));
    else parts.push(make("span", { class: "quiet", text: "a phrase of the lexicon" }));
    if (message.refused.length) parts.push(make("b", { text: "It cannot be done now, so it was not given" + (state.recordings.length > 1 ? " to " + list(message.refused) : "") + "." }));
    say("sure", ...parts);
    remember({ text: message.text, kind: message.kind, state: message.refused.length ? "refused" : "given", number: null, verdicts: state.recordings.map(() => null) });
  }

  const brief = (words_) => (words_.length > 60 ? words_.slice(0, 59) + "…" : words_);

  function remember(entry) {
    state.past.push(entry);
    if (state.past.length > PAST) state.past.shift();
    state.recalled = -1;
    tellPast();
  }

  // Notes the verdict on each instruction of the past. Verdicts come in the order in which instructions were given.
  function noteVerdicts(message) {
    let changed = false;
    message.frames.forEach((one, i) => {
      const open_ = (entry) => entry.state === "given" && entry.verdicts.length === message.frames.length;
      if (one.instruction) {
        const entry = state.past.filter(open_).at(-1);
        if (entry && entry.kind === one.instruction.kind && !(entry.numbers || [])[i]) {
          entry.numbers = entry.numbers || [];
          entry.numbers[i] = one.instruction.number;
        }
      }
      for (const verdict of one.verdicts) {
        const entry = state.past.find((e) => e.numbers && e.numbers[i] === verdict.number && e.kind === verdict.kind);
        if (entry && entry.verdicts[i] === null) {
          entry.verdicts[i] = verdict.followed;
          changed = true;
        }
      }
    });
    if (changed) tellPast();
  }

  function tellPast() {
    element("silence").hidden = state.past.length > 0;
    element("past").replaceChildren(...[...state.past].reverse().map((entry) => {
      const item = make("li", {}, make("q", { text: entry.text }), make("small", { text: entry.kind }));
      if (entry.state === "refused") item.append(make("span", { class: "bad", text: "could not be done" }));
      (entry.verdicts || []).forEach((followed, i) => {
        if (followed === null) return;
        const who = state.recordings.length > 1 && state.recordings[i] ? state.recordings[i].name + " " : "";
        item.append(make("span", { class: followed ? "good" : "bad", text: who + (followed ? "✓ followed" : "✗ not followed") }));
      });
      const again = make("button", { type: "button", text: "Say again" });
      again.addEventListener("click", () => speak(entry.text));
      item.append(again);
      return item;
    }));
  }

  function speak(words_) {
    if (!words_.trim()) {
      say("error", "Type what the team should do, or choose from the list.");
      return;
    }
    if (!connected()) { // what was typed stays in its place
      say("error", "There is no connection to the server, so nothing was said. Say it again when it is back.");
      if (!text.value) text.value = words_;
      return;
    }
    send({ do: "say", text: words_, agents: scope(), hold: element("hold").value ? Number(element("hold").value) : null });
    text.value = "";
    suggest();
  }

  function scopes(message) {
    const legend = make("legend", { text: "To" });
    const boxes = message.recordings[0].agents.map((name, i) => {
      const box = make("input", { type: "checkbox", value: i });
      box.checked = i !== message.seat;
      box.addEventListener("change", scopeLabel);
      return make("label", {}, box, words(name) + (i === message.seat ? " (you)" : ""));
    });
    element("scope").replaceChildren(legend, ...boxes);
    scopeLabel();
  }

  const boxes = () => [...element("scope").querySelectorAll("input")];

  // The addressed agents; null for all agents that no person drives.
  function scope() {
    const all = boxes();
    const chosen = all.filter((box) => box.checked).map((box) => Number(box.value));
    const usual = all.filter((box) => Number(box.value) !== state.opened.seat).length;
    return chosen.length === 0 || (chosen.length === usual && !chosen.includes(state.opened.seat)) ? null : chosen;
  }

  function scopeLabel() {
    const chosen = state.opened ? scope() : null;
    const names = chosen && chosen.map((i) => words(state.opened.recordings[0].agents[i]));
    const ticks = element("hold").value;
    element("more").toggleAttribute("data-set", Boolean(names || ticks));
    element("scope-words").textContent = (names ? "to " + list(names) : "to everybody") + ", " + (ticks ? "for " + ticks + " ticks" : "until ended");
  }

  function asks(all) {
    element("asks").replaceChildren(...all.map((ask) => {
      const button = make("button", { type: "button" }, ask.phrases[0], make("small", { text: ask.kind + ": " + ask.meaning }));
      button.addEventListener("click", () => speak(ask.phrases[0]));
      return make("li", {}, button);
    }));
    text.placeholder = "Say something, such as: " + (all.find((ask) => ask.kind.startsWith("dont") || ask.kind.startsWith("avoid")) || all[0]).phrases[0];
  }

  // ── suggestions: phrases that contain all the words typed so far

  function suggest() {
    const typed = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    if (typed.length && state.opened) {
      for (const ask of state.opened.asks) {
        const fitting = ask.phrases.filter((phrase) => typed.every((part) => phrase.toLowerCase().includes(part)));
        found.push(...fitting.slice(0, 2).map((phrase) => ({ phrase, kind: ask.kind })));
      }
    }
    state.picked = -1;
    const shown = found.filter(({ phrase }) => phrase.toLowerCase() !== text.value.toLowerCase()).slice(0, SUGGESTIONS);
    options.replaceChildren(...shown.map(({ phrase, kind }, i) => {
      const item = make("li", { role: "option", id: "option-" + i, "aria-selected": "false" }, make("span", { text: phrase }), make("small", { text: kind }));
      item.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        speak(phrase);
      });
      return item;
    }));
    unfold(shown.length > 0);
  }

  function unfold(on) {
    options.hidden = !on;
    text.setAttribute("aria-expanded", String(on));
    if (!on) text.removeAttribute("aria-activedescendant");
  }

  function pick(by) {
    const items = [...options.children];
    state.picked = (state.picked + by + items.length + 1) % (items.length + 1);
    if (state.picked === items.length) state.picked = -1;
    items.forEach((item, i) => item.setAttribute("aria-selected", String(i === state.picked)));
    if (state.picked < 0) text.removeAttribute("aria-activedescendant");
    else {
      text.setAttribute("aria-activedescendant", "option-" + state.picked);
      items[state.picked].scrollIntoView({ block: "nearest" });
    }
  }

  function recall(by) {
    const said = state.past.map((entry) => entry.text);
    if (!said.length) return;
    const at = state.recalled < 0 ? said.length : state.recalled;
    state.recalled = Math.max(0, Math.min(said.length, at + by));
    text.value = said[state.recalled] || "";
    unfold(false);
  }

  text.addEventListener("input", () => {
    state.recalled = -1;
    suggest();
  });
  text.addEventListener("blur", () => unfold(false));
  text.addEventListener("keydown", (event) => {
    const down = event.key === "ArrowDown";
    if (down || event.key === "ArrowUp") {
      event.preventDefault();
      if (options.hidden) recall(down ? 1 : -1);
      else pick(down ? 1 : -1);
    } else if (event.key === "Escape") {
      if (options.hidden) text.blur();
      else unfold(false);
    } else if (event.key === "Enter" && state.picked >= 0 && !options.hidden) {
      event.preventDefault();
      speak(options.children[state.picked].firstChild.textContent);
    }
  });
  element("speak").addEventListener("submit", (event) => {
    event.preventDefault();
    speak(text.value);
  });
  element("hold").addEventListener("change", scopeLabel);

  // ── driving an agent

  function pad(message) {
    const macros = message.seat === null ? [] : message.macros[message.seat];
    element("pad").hidden = !macros.length;
    state.keys = {};
    const button = (macro, key, label, class_) => {
      const made = make("button", { type: "button", "data-macro": macro, "aria-label": words(macro), title: words(macro), class: class_ }, label);
      if (key && !(key in MOVES)) made.append(make("kbd", { text: key }));
      if (key) state.keys[key] = macro;
      made.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        send({ do: "drive", macro });
      });
      made.addEventListener("click", (event) => {
        if (event.detail === 0) send({ do: "drive", macro }); // by keyboard: no pointer came before
      });
      return made;
    };
    const moves = Object.entries(MOVES).filter(([, macro]) => macros.includes(macro));
    element("cross").replaceChildren(...moves.map(([key, macro]) => button(macro, key, SIGNS[macro], macro.toLowerCase())));
    const rest = macros.filter((macro) => !(macro in SIGNS && moves.length));
    element("macros").replaceChildren(...rest.map((macro, i) => button(macro, LETTERS[i], words(macro), "")));
  }

  function keysNow(one) {
    if (state.opened.seat === null) return;
    const doing = one.over ? "" : one.agents[state.opened.seat].macro;
    for (const button of element("pad").querySelectorAll("button")) button.classList.toggle("running", button.dataset.macro === doing);
  }

  // ── controls

  const speed = element("speed");
  function hasten(by) {
    speed.selectedIndex = Math.max(0, Math.min(speed.options.length - 1, speed.selectedIndex + by));
    send({ do: "speed", value: Number(speed.value) });
  }
  const acts = {
    play: () => send({ do: state.playing ? "pause" : "play" }),
    step: () => send({ do: "step" }),
    end: () => send({ do: "end" }),
  };
  for (const [id, act] of Object.entries(acts)) element(id).addEventListener("click", act);
  speed.addEventListener("change", () => hasten(0));
  element("again").addEventListener("change", (event) => send({ do: "again", value: event.target.checked }));
  element("choices").addEventListener("submit", (event) => {
    event.preventDefault();
    send({ do: "reset", seed: seed() });
  });
  element("world").addEventListener("change", () => chooseWorld(null));
  for (const id of ["team", "against", "seat"]) element(id).addEventListener("change", open);
  element("more").addEventListener("keydown", (event) => {
    if (event.key === "Escape") element("more").open = false;
  });
  document.addEventListener("pointerdown", (event) => {
    if (!element("more").contains(event.target)) element("more").open = false;
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName) && target.type !== "checkbox") return;
    const presses = [" ", "Enter"].includes(event.key) && ["BUTTON", "SUMMARY", "A", "INPUT"].includes(target.tagName);
    if (presses) return;
    const press = {
      " ": acts.play, ".": acts.step, e: acts.end, r: () => send({ do: "reset", seed: seed() }),
      "/": () => text.focus(), "+": () => hasten(1), "=": () => hasten(1), "-": () => hasten(-1),
    };
    if (event.key in state.keys) send({ do: "drive", macro: state.keys[event.key] });
    else if (event.key in press) press[event.key]();
    else return;
    event.preventDefault();
  });

  addEventListener("resize", () => {
    if (!state.board) return;
    state.board.measure(element("bar"));
    const last = state.recordings[0].frames.length - 1;
    for (const view of state.board.views) state.board.chart(view, last, Math.max(last, 30));
    draw();
  });

  const narrow = matchMedia("(max-width: 560px)");
  const fold = () => {
    element("setup").open = !narrow.matches;
    element("said").open = !narrow.matches;
  };
  narrow.addEventListener("change", fold);
  fold();

  // The page gets as much room below as the bar is tall, so that everything can be scrolled into sight.
  new ResizeObserver(() => {
    document.body.style.setProperty("--bar", element("bar").offsetHeight + 8 + "px");
  }).observe(element("bar"));

  connect();
})();
