"use strict";
// The playground's page. All that comes from the server is data: it is drawn or set as text, never as markup.
(() => {
  const KEPT = 300; // frames that can be looked back at
  const QUIET = 5000; // milliseconds, at least, between two announcements
  const GLIDE = 1000; // milliseconds, at most, in which sprites move to their next places
  const ANSWER_SHOWN = 12000; // milliseconds
  const PLAY = "M5 2.5v15l12-7.5z";
  const PAUSE = "M4 3h4v14H4zM12 3h4v14h-4z";
  const { words, between } = MavicPaint;
  const { make, plural, list, kindWord } = MavicStage;
  const element = (id) => document.getElementById(id);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const [text, options, answer] = ["text", "list", "answer"].map(element);
  const state = {
    socket: null, hello: null, opened: null, board: null, recordings: [], playing: true, speed: 3,
    arrived: 0, span: 0, retries: 0, last: null, wish: null,
    back: null, log: [], holding: [], seed: 1, script: [], planned: [], time: 0, server: null, lost: null, held: false,
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
    const acts = { hello, opened, frame, understood: talk.understood, clock: tellClock };
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
    const shared = MavicAddress.read(location.hash);
    if (!shared && !state.last && message.story) {
      location.replace("/story"); // a first visit begins with the first minute
      return;
    }
    if (state.opened) state.lost = ["lost", whatIsLost(message.server !== state.server)];
    else if (shared) state.lost = whatIsMissing(shared);
    state.server = message.server;
    fill("world", message.listing.map(({ world, title }) => [world, title]));
    const last = state.wish || (shared && isHere(shared.world) && follow(shared)) || state.last;
    element("world").value = last && isHere(last.world) ? last.world : message.opens;
    chooseWorld(last);
    if (message.words) say("error", "Only the phrases in the list are understood here: " + message.words);
  }

  // After a lost connection the episode begins anew, with what the address holds.
  function whatIsLost(restarted) {
    const { frames, totals } = state.recordings[0] || { frames: [] };
    const counts = totals && totals.judged ? ", and that " + totals.followed + " of " + plural(totals.judged, "instruction") + " were followed" : "";
    return (restarted ? "The server was restarted" : "The connection was lost for a while") + ". The episode begins anew, and what was said is said again at its time. Lost: the recording of " + plural(frames.length, "move") + counts + ".";
  }

  const isHere = (name) => state.hello.listing.some(({ world }) => world === name);

  // Why a page does not go on with what its address holds, as a kind of answer and a text; null if it does.
  function whatIsMissing(shared) {
    if (!isHere(shared.world)) return ["lost", "There is no team here for the world “" + shared.world + "” of this address."];
    const { teams } = state.hello.listing.find(({ world }) => world === shared.world);
    const stranger = shared.teams.find((team) => !teams.includes(team));
    if (stranger) return ["lost", "No team is called “" + stranger + "” here. The address meant another one."];
    const again = performance.getEntriesByType("navigation")[0].type === "reload";
    return again ? ["sure", "The page was loaded again. The episode begins anew" + (shared.script.length ? ", and what was said is said again at its time." : ".")] : null;
  }

  // Takes over what an address holds and returns what it opens.
  function follow(shared) {
    element("seed").value = shared.seed;
    state.script = shared.script;
    const { teams } = state.hello.listing.find(({ world }) => world === shared.world) || { teams: [] };
    return { world: shared.world, teams: shared.teams.length ? shared.teams : teams.slice(0, 1), seat: shared.seat };
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
    const { teams, team_words: called, agent_words: agents, guest } = state.hello.listing.find((entry) => entry.world === world);
    fill("team", teams.map((name, i) => [name, called[i]]));
    fill("against", [["", "nobody"], ...teams.map((name, i) => [name, called[i]])]);
    fill("seat", [["", "nobody"], ...agents.map((name, i) => [String(i), name]), ...(guest ? [["guest", "one more agent"]] : [])]);
  }

  // Shows what is open in the boxes.
  function choose(last) {
    if (last && isHere(last.world)) {
      if (element("world").value !== last.world) {
        element("world").value = last.world;
        fillTeams();
      }
      const has = (id, value) => [...element(id).options].some((option) => option.value === value);
      for (const [id, value] of [["team", last.teams[0]], ["against", last.teams[1] || ""], ["seat", last.seat === null ? "" : String(last.seat)]]) {
        if (has(id, value)) element(id).value = value;
      }
      label();
    }
  }

  function label() {
    const teams = ["team", "against"].map((id) => element(id)).filter((box) => box.value).map((box) => box.selectedOptions[0].text);
    element("setup-label").textContent = element("world").selectedOptions[0].text + ": " + teams.join(" beside ");
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
    label();
    state.planned = state.script;
    send({ do: "open", seed: seed(), script: state.script, paused: calm.matches && !state.held, ...wish });
    state.script = [];
    state.held = true; // from now on the person decides whether the clock runs
  }

  function opened(message) {
    state.opened = message;
    state.last = state.wish || state.last;
    state.wish = null;
    state.board = null;
    state.recordings = message.recordings.map((recording) => ({ ...recording, world: message.world, frames: [], totals: null }));
    state.back = null;
    element("job").textContent = message.job;
    element("stage").replaceChildren();
    quieten();
    scopes(message);
    asks(message.asks);
    pad.fill(message);
    chips(message);
    for (const ending of ["html", "gif"]) element("save-" + ending).href = "/recording/" + state.hello.ticket + "." + ending;
    Object.assign(state, { seed: message.seed, log: [], time: 0 });
    const before = MavicAddress.read(location.hash);
    const same = before && before.world === message.world && String(before.teams) === String(state.last.teams) && before.seat === state.last.seat;
    keepAddress(Boolean(before) && !same);
    element("contrast").hidden = true;
    if (state.lost) say(...state.lost);
    state.lost = null;
  }

  // What is open and what was said stand in the address, so that going back and loading the page again keep them.
  function keepAddress(fresh = false) {
    const coming = state.planned.filter(({ time }) => time > state.time);
    MavicAddress.keep({ world: state.opened.world, teams: state.last.teams, seat: state.opened.seat === null ? null : state.last.seat, seed: state.seed, log: [...state.log, ...coming] }, fresh);
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
    const fresh = !state.board;
    if (fresh) {
      const touch = (what, event) => menu.open(what, event.clientX, event.clientY, element("about"));
      const options_ = { live: true, seat: state.opened.seat, pick, touch, unfolded: redraw };
      state.board = MavicStage.board(state.hello.look, element("stage"), state.recordings, options_);
      state.board.legend("In the charts, shaded: while something was asked.");
      scopeLabel();
    }
    state.recordings.forEach((recording) => (recording.standing = message.standing));
    Object.assign(state, { log: message.log, seed: message.seed, span: calm.matches ? 0 : Math.min(GLIDE, 1000 / state.speed), arrived: performance.now(), back: null });
    const { time } = message.frames[0];
    if (time < state.time) state.planned = []; // the episode began anew
    state.time = time;
    keepAddress();
    compare();
    const last = state.recordings[0].frames.length - 1;
    show(last);
    if (fresh) state.board.measure(element("bar")); // all that stands above the picture is there now
    element("seed").dataset.now = message.seed;
    const active = state.recordings.some((recording) => recording.frames[last].instruction);
    element("end").disabled = !active && !message.queued.length;
    element("end").textContent = active && message.queued.length ? "Next" : message.holding.length > 1 ? "End all" : "End it";
    state.holding = message.holding;
    talk.holds(message);
    past.note(message);
    announce(last);
    if (state.opened.seat !== null) pad.tell(state.recordings[0].frames, state.opened.seat);
  }

  // Says how two teams differed in an episode that has just ended, or that they did not.
  function compare() {
    const ends = state.recordings.map(({ frames }) => frames.at(-1));
    if (ends.length < 2 || !ends.every(({ over }) => over)) return;
    const said = ends.map((end, i) => state.recordings[i].name + (end.over === "solved" ? " is done after " : " is not done after ") + plural(end.time, "move") + (end.judged ? ", followed " + end.followed + " of " + end.judged : ""));
    const [one, two] = ends;
    const alike = one.over === two.over && one.followed === two.followed && Math.abs(one.time - two.time) <= 0.1 * Math.max(one.time, two.time);
    element("contrast").textContent = "The last episode: " + said.join("; ") + "." + " " + (alike ? "The two teams do alike." : state.opened.apart);
    element("contrast").hidden = false;
  }

  // Shows a frame of all teams: the present one, or an earlier one.
  function show(index) {
    const last = state.recordings[0].frames.length - 1;
    for (const view of state.board.views) {
      state.board.tell(view, index);
      state.board.trace(view);
      state.board.chart(view, index, Math.max(last, 30));
    }
    const { time } = state.recordings[0].frames[index];
    element("clock").textContent = index < last ? "looking back at move " + time : "move " + time;
    Object.assign(element("back"), { max: last, value: index });
    MavicTimeline.fill(element("track"), state.recordings[0], last).style.left = (100 * index) / Math.max(last, 1) + "%";
    element("live").hidden = index >= last;
    requestAnimationFrame(draw);
  }

  // Looks back at an earlier frame; the clock waits meanwhile.
  function lookBack(index) {
    if (!state.board) return;
    const last = state.recordings[0].frames.length - 1;
    const at = Math.max(0, Math.min(last, index));
    state.back = at < last ? at : null;
    if (state.back !== null && state.playing) send({ do: "pause" });
    show(at);
  }
  const shown = () => (state.back === null ? state.recordings[0].frames.length - 1 : state.back);

  // Sprites glide from their places in the last tick to their present ones.
  function draw() {
    if (!state.board) return;
    const share = state.span ? Math.min(1, (performance.now() - state.arrived) / state.span) : 1;
    for (const view of state.board.views) {
      const frames = view.recording.frames;
      const now = frames.at(state.back ?? -1);
      const before = state.back === null ? frames.at(-2) : null;
      const moves = before && !before.over && share < 1;
      const scene = moves ? between(now.scene, before.scene, 1 - share, -1) : now.scene;
      state.board.paint(view, scene, now);
    }
    if (share < 1) requestAnimationFrame(draw);
  }

  // A screen reader is told of instructions and verdicts, not of every episode, and not faster than one can listen.
  let announced = "";
  let announcedAt = -QUIET;
  function announce(index) {
    const spoken = state.board.spoken(index);
    const told = state.recordings.some(({ frames }) => frames[index].instruction || frames[index].verdicts.length);
    if (spoken === announced || !told || performance.now() - announcedAt < QUIET) return;
    element("spoken").textContent = spoken;
    announced = spoken;
    announcedAt = performance.now();
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

  // Shows an answer. One that needs no reply makes room for the examples after a while.
  let fading = 0;
  function say(kind, ...parts) {
    clearTimeout(fading);
    answer.dataset.state = kind;
    answer.replaceChildren(...parts);
    if (kind === "sure") fading = setTimeout(quieten, ANSWER_SHOWN);
  }

  function quieten() {
    answer.replaceChildren();
    delete answer.dataset.state;
  }

  // A button that says a phrase, perhaps to certain agents.
  function sayButton(label, title, act) {
    const button = make("button", { type: "button", text: label, title });
    button.addEventListener("click", act);
    return button;
  }
  const nameOf = (i) => state.opened.recordings[0].agent_words[i];

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
    tell(words_, scope());
    text.value = "";
    suggestions.suggest();
  }

  function tell(words_, agents) {
    send({ do: "say", text: words_, agents, hold: element("hold").value ? Number(element("hold").value) : null });
  }

  function scopes(message) {
    const legend = make("legend", { text: "To" });
    const boxes = message.recordings[0].agent_words.map((name, i) => {
      const box = make("input", { type: "checkbox", value: i });
      box.checked = i !== message.seat;
      box.addEventListener("change", scopeLabel);
      return make("label", {}, box, name + (i === message.seat ? " (you)" : ""));
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
    const names = chosen && chosen.map(nameOf);
    if (state.board) state.board.address(chosen || []);
    const moves = element("hold").value;
    element("more").toggleAttribute("data-set", Boolean(names || moves));
    element("scope-words").textContent = (names ? "to " + list(names) : "to everybody") + ", " + (moves ? "for " + moves + " moves" : "until I end it");
    if (state.board) requestAnimationFrame(draw);
  }

  // A click on an agent addresses it alone; another click addresses everybody again.
  function pick(agent) {
    const alone = (scope() || []).length === 1 && scope()[0] === agent;
    for (const box of boxes()) box.checked = alone ? Number(box.value) !== state.opened.seat : Number(box.value) === agent;
    scopeLabel();
  }

  function chips(message) {
    const examples = message.examples.length ? message.examples : message.asks.slice(0, 4).map((ask) => ask.phrase);
    element("chips").replaceChildren(make("span", { text: "Try" }), ...examples.map((example) => sayButton(example, "Say this", () => speak(example))));
  }

  function asks(all) {
    element("asks").replaceChildren(...all.map((ask) => {
      const button = make("button", { type: "button" }, ask.phrase, make("small", { text: ask.meaning }));
      button.addEventListener("click", () => speak(ask.phrase));
      return make("li", {}, button);
    }));
    text.placeholder = "Say something, such as: " + (all.find((ask) => ask.kind.startsWith("dont") || ask.kind.startsWith("avoid")) || all[0]).phrase;
  }

  const talk = MavicTalk.start({
    box: element("holds"), answer: say, quieten, remember, send, opened: () => state.opened, teams: () => state.recordings.length,
  });
  const menu = MavicMenu.start({
    menu: element("menu"), floor: () => element("bar").getBoundingClientRect().top, opened: () => state.opened, holding: () => state.holding,
    tell, end: (kind, agents) => send({ do: "end", kind, agents }),
    address: (agent) => {
      if (!(scope() || []).includes(agent) || scope().length > 1) pick(agent);
      text.focus();
    },
  });
  function about() {
    if (state.opened) menu.open(null, innerWidth, innerHeight, element("about")); // beside the picture, if there is room
  }
  const past = MavicPast.start({ kindWord: (kind) => kindWord(state.opened.recordings[0], kind), box: element("past"), empty: element("silence"), recordings: () => state.recordings, speak });
  function remember(entry) {
    past.remember(entry);
    suggestions.forget();
  }
  const suggestions = MavicSuggest.start({
    text, options, speak, kindWord: (kind) => kindWord(state.opened.recordings[0], kind), asks: () => (state.opened ? state.opened.asks : []), said: past.said,
  });
  element("speak").addEventListener("submit", (event) => {
    event.preventDefault();
    speak(text.value);
  });
  element("hold").addEventListener("change", scopeLabel);

  const pad = MavicPad.start(send, () => say("error", "Your way is blocked. Tell the one in your way to step aside, such as “" + nameOf(0) + ", go left”, or start again with r."),
    (agent) => say("error", "You are in the way: " + nameOf(agent) + " cannot get past you. Step aside."));

  // ── controls

  const speed = element("speed");
  function hasten(by) {
    speed.selectedIndex = Math.max(0, Math.min(speed.options.length - 1, speed.selectedIndex + by));
    send({ do: "speed", value: Number(speed.value) });
  }
  const acts = {
    play: () => send({ do: state.playing ? "pause" : "play" }),
    step: () => (state.back === null ? send({ do: "step" }) : lookBack(state.back + 1)),
    end: () => send({ do: "end" }),
    live: () => lookBack(Infinity),
    about,
    share,
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
  element("seat").addEventListener("change", () => element("stage").focus({ preventScroll: true })); // arrows drive now
  element("back").addEventListener("input", (event) => lookBack(Number(event.target.value)));
  // A touch beside an open menu closes it and does nothing else. So does one on a thing that is gone when it ends.
  let pressed = null;
  let closing = false;
  document.addEventListener("pointerdown", (event) => {
    pressed = event.target;
    const open_ = ["more", "files", "setup"].map(element).filter((menu) => menu.open && !menu.contains(event.target));
    closing = (open_.length > 0 || !element("menu").hidden) && Boolean(event.target.closest("#stage"));
    for (const menu of open_) menu.open = false;
  }, { capture: true });
  document.addEventListener("click", (event) => {
    const gone = pressed && !pressed.getClientRects().length && !event.target.contains(pressed);
    if (event.detail && (closing || gone)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
    closing = false;
  }, { capture: true });
  for (const menu of ["more", "files", "setup"].map(element)) {
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape") menu.open = false;
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName) && target.type !== "checkbox") return;
    const presses = [" ", "Enter"].includes(event.key) && ["BUTTON", "SUMMARY", "A", "INPUT"].includes(target.tagName);
    if (presses) return;
    const press = {
      " ": acts.play, ".": acts.step, e: acts.end, a: about, r: () => send({ do: "reset", seed: seed() }),
      "/": () => text.focus(), "+": () => hasten(1), "=": () => hasten(1), "-": () => hasten(-1),
    };
    if (event.key in pad.keys) send({ do: "drive", macro: pad.keys[event.key] });
    else if (event.key in press) press[event.key]();
    else if (["ArrowLeft", "ArrowRight"].includes(event.key)) lookBack(shown() + (event.key === "ArrowLeft" ? -1 : 1));
    else return;
    event.preventDefault();
  });

  function redraw() {
    if (!state.board) return;
    state.board.measure(element("bar"));
    show(shown());
  }
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // ── sharing and saving

  async function share() {
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    say("sure", make("b", { text: copied ? "The address is copied." : "The address stands in the address bar." }), make("span", { text: "It holds the world, the teams, the seed and what was said in this episode." }));
  }
  addEventListener("hashchange", () => {
    const shared = MavicAddress.read(location.hash);
    if (!shared || !state.hello) return;
    if (!isHere(shared.world)) {
      say(...whatIsMissing(shared));
      keepAddress();
      return;
    }
    const wish = follow(shared);
    element("world").value = wish.world;
    chooseWorld(wish);
  });

  MavicMic.start({ button: element("mic"), text, speak, complain: (why) => say("error", why) });
  MavicSave.start(["save-html", "save-gif"].map(element), status, () => state.opened.world);

  const narrow = matchMedia("(max-width: 560px), (max-height: 500px)");
  const fold = () => {
    element("said").open = !narrow.matches;
  };
  narrow.addEventListener("change", fold);
  fold();

  // The page gets as much room below as the bar is tall, so that everything can be scrolled into sight, and the picture
  // what is left.
  new ResizeObserver(() => {
    document.body.style.setProperty("--bar", element("bar").offsetHeight + 8 + "px");
    redraw();
  }).observe(element("bar"));

  connect();
})();
