"use strict";
// The page of a study. The server says which screen is shown; all that comes from it is set as text, never as markup.
(() => {
  const GLIDE = 220; // milliseconds, at most, in which sprites move to their next places
  const ALONE_AFTER = 30000; // milliseconds for which the other person is waited for before one may go on alone
  const { between, words } = MavicPaint;
  const { make, list } = MavicStage;
  const element = (id) => document.getElementById(id);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const state = { socket: null, retries: 0, opened: null, recording: null, board: null, arrived: 0, other: "there", people: 1, waitTimer: 0, shown: "" };

  // Returns whether the message could be sent.
  function send(message) {
    const connected = Boolean(state.socket) && state.socket.readyState === WebSocket.OPEN;
    if (connected) state.socket.send(JSON.stringify(message));
    else status("There is no connection; nothing was sent. Please try again in a moment.", true);
    return connected;
  }

  function status(text, bad) {
    element("status").textContent = text;
    element("status").toggleAttribute("data-bad", Boolean(bad));
  }

  function connect() {
    const scheme = location.protocol === "https:" ? "wss://" : "ws://";
    const socket = new WebSocket(scheme + location.host + location.pathname.replace(/\/$/, "") + "/live");
    state.socket = socket;
    socket.addEventListener("open", () => {
      state.retries = 0;
      status("");
    });
    socket.addEventListener("message", (event) => receive(JSON.parse(event.data)));
    socket.addEventListener("close", (event) => {
      if (event.code === 4001) {
        blank("This link was opened elsewhere", "The study goes on there. To go on here, load this page again.");
        status("");
        return;
      }
      if (event.code === 4004) return;
      const wait = Math.min(8, 2 ** state.retries);
      state.retries += 1;
      status("The connection is lost; trying again in " + wait + " s. What you did is kept.", true);
      setTimeout(connect, 1000 * wait);
    });
  }

  function receive(message) {
    const acts = { screen, frame, understood, prompt, over, other };
    if (message.type in acts) acts[message.type](message);
    else if (message.type === "status") status(message.text);
    else if (message.type === "spoken") say("sure", make("span", {}, "The other person says: “" + message.text + "”"));
    else if (message.type === "error") complain(message.text);
  }

  function complain(text) {
    const wrong = element("sheet").querySelector(".wrong");
    if (element("sheet").hidden || !wrong) say("error", text);
    else wrong.textContent = text;
  }

  // ── screens

  function button(text, act, main) {
    const made = make("button", { type: "button", text, class: main ? "main" : "" });
    made.addEventListener("click", act);
    return made;
  }
  const paragraph = (text, kind) => make("p", { class: kind || "text", text });
  // A text of the plan: blank lines part paragraphs, other line breaks are spaces.
  const paragraphs = (text) => text.trim().split(/\n\s*\n/).map((one) => paragraph(one.replace(/\s*\n\s*/g, " ")));
  const actions = (...buttons) => make("div", { class: "actions" }, ...buttons);

  function sheet(...content) {
    for (const id of ["kitchen", "bar"]) element(id).hidden = true;
    element("sheet").hidden = false;
    element("sheet").replaceChildren(...content, make("p", { class: "wrong", role: "alert" }));
    state.board = state.opened = null;
    scrollTo(0, 0);
    element("sheet").focus({ preventScroll: true });
  }

  function blank(heading, text) {
    element("leave").hidden = true;
    sheet(make("h2", { text: heading }), paragraph(text));
  }

  function screen(message) {
    element("title").textContent = document.title = message.title;
    element("parts").hidden = message.step < 0 || message.name === "end";
    element("part").textContent = Math.min(message.step + 1, message.steps) + " of " + message.steps;
    Object.assign(element("progress"), { max: Math.max(1, message.steps), value: Math.max(0, message.step) });
    element("leave").hidden = !["intro", "task", "questions"].includes(message.name);
    state.people = message.people;
    state.shown = message.name;
    clearTimeout(state.waitTimer);
    ({ consent, intro, task, questions, end, left })[message.name](message);
  }

  function consent(message) {
    const agree = make("input", { type: "checkbox", id: "agree" });
    const begin = button("Begin", () => send({ do: "consent", agree: true }), true);
    begin.disabled = true;
    agree.addEventListener("change", () => (begin.disabled = !agree.checked));
    sheet(
      make("h2", { text: "Welcome" }), ...paragraphs(message.text),
      make("fieldset", {}, make("label", { for: "agree" }, agree, "I have read this and I agree to take part.")),
      actions(begin, button("I do not take part", () => send({ do: "consent", agree: false }))),
    );
  }

  function intro(message) {
    const content = [make("h2", { text: message.heading }), ...paragraphs(message.text)];
    content.push(paragraph(message.team + " works for you. " + message.job, "note"));
    if (message.you) content.push(paragraph("You are " + message.you + ". Move with the arrow keys or with the buttons below the picture.", "note"));
    if (message.people > 1) content.push(paragraph("Another person is in the same kitchen, on another screen.", "note"));
    if (message.again) content.push(paragraph("You have begun this part before. It goes on where it stopped.", "note"));
    if (message.waits) content.push(make("p", { class: "text", id: "waits", role: "status", text: "You are ready. We wait for the other person…" }), make("div", { class: "actions", id: "alone-here" }));
    else content.push(actions(button("Start", () => send({ do: "ready", step: message.step }), true)));
    sheet(...content);
    if (message.waits) offerAlone();
  }

  function question(one) {
    const name = "q-" + one.name;
    const legend = make("legend", { text: one.text + (one.optional ? " (optional)" : "") });
    const radio = (value, label) => make("label", {}, make("input", { type: "radio", name, value }), label);
    if (one.scale) {
      const points = Array.from({ length: one.scale }, (_, i) => radio(i + 1, String(i + 1)));
      return make("fieldset", { "data-name": one.name, "data-sort": "scale" }, legend, make("div", { class: "scale" },
        make("span", { class: "ends", text: one.low }), make("div", { class: "points" }, ...points), make("span", { class: "ends", text: one.high })));
    }
    if (one.choices) return make("fieldset", { "data-name": one.name, "data-sort": "choice" }, legend, ...one.choices.map((choice) => radio(choice, choice)));
    return make("fieldset", { "data-name": one.name, "data-sort": "text" }, legend,
      make("textarea", { rows: one.lines, maxlength: 2000, "aria-label": one.text }), make("span", { class: "note", text: "Please write no names." }));
  }

  function answerOf(field) {
    if (field.dataset.sort === "text") return field.querySelector("textarea").value.trim() || null;
    const picked = field.querySelector("input:checked");
    return picked ? (field.dataset.sort === "scale" ? Number(picked.value) : picked.value) : null;
  }

  function questions(message) {
    const form = make("form", { autocomplete: "off" }, ...message.questions.map(question), actions(make("button", { type: "submit", class: "main", text: "Go on" })));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const answers = Object.fromEntries([...form.querySelectorAll("fieldset")].map((field) => [field.dataset.name, answerOf(field)]));
      send({ do: "answers", step: message.step, answers });
    });
    sheet(make("h2", { text: message.heading }), form);
  }

  function end(message) {
    sheet(make("h2", { text: "Done" }), ...paragraphs(message.text), paragraph("Your completion code:", "note"),
      make("output", { class: "code", id: "code", text: message.code }), paragraph("You can close this page. The link shows the code again.", "note"));
  }

  function left(message) {
    sheet(make("h2", { text: "Goodbye" }), paragraph(message.text), paragraph("You can close this page.", "note"));
  }

  // ── the task

  function task(message) {
    element("sheet").hidden = true;
    element("sheet").replaceChildren();
    for (const id of ["kitchen", "bar"]) element(id).hidden = false;
    const { opened, frames } = message;
    state.opened = opened;
    state.recording = { ...opened.recordings[0], world: opened.world, frames: [...frames.frames], standing: frames.standing, totals: null };
    element("stage").replaceChildren();
    state.board = MavicStage.board(message.look, element("stage"), [state.recording], { seat: opened.seat });
    state.about = message.heading;
    chips(opened.examples);
    answerBox.replaceChildren();
    pad.fill(opened);
    frame(frames);
    measure();
    element("kitchen").focus({ preventScroll: true });
  }

  function frame(message) {
    if (!state.board) return;
    const { recording } = state;
    recording.frames = [...recording.frames.slice(-40), message.frames[0]];
    recording.standing = message.standing;
    state.arrived = performance.now();
    state.board.tell(state.board.views[0], recording.frames.length - 1);
    const holds = Boolean(recording.frames.at(-1).instruction);
    element("end").disabled = !holds && !message.queued.length;
    element("spoken").textContent = holds ? state.board.spoken(recording.frames.length - 1) : "";
    if (state.opened.seat !== null) pad.tell(recording.frames, state.opened.seat);
    requestAnimationFrame(draw);
  }

  // Sprites glide from their places in the last tick to their present ones.
  function draw() {
    if (!state.board) return;
    const [view] = state.board.views;
    const [before, now] = [view.recording.frames.at(-2), view.recording.frames.at(-1)];
    const share = calm.matches ? 1 : Math.min(1, (performance.now() - state.arrived) / GLIDE);
    const moves = before && !before.over && share < 1;
    state.board.paint(view, moves ? between(now.scene, before.scene, 1 - share, -1) : now.scene, now);
    if (share < 1) requestAnimationFrame(draw);
  }

  function measure() {
    if (!state.board) return;
    document.body.style.setProperty("--bar", element("bar").offsetHeight + 8 + "px");
    state.board.measure(element("bar"));
    requestAnimationFrame(draw);
  }

  function prompt(message) {
    element("prompt-text").textContent = message.text || state.about;
    element("prompt").toggleAttribute("data-asks", Boolean(message.text));
    element("skip").hidden = !message.text;
    measure();
    if (message.text && message.waits) text.focus({ preventScroll: true });
  }

  function veil(content) {
    element("stage").querySelector(".veil")?.remove();
    if (content.length) element("stage").append(make("div", { class: "veil", role: "status" }, ...content));
  }

  function over(message) {
    prompt({ text: "" });
    element("bar").hidden = true;
    const next = button("Go on", () => send({ do: "next" }), true);
    veil([make("p", { text: message.text }), next]);
    next.focus({ preventScroll: true });
  }

  function other(message) {
    state.other = message.state;
    if (element("bar").hidden && state.shown === "task") return; // the task is over
    const away = message.state === "away";
    if (state.shown === "task") {
      veil(away ? [make("p", { text: "The other person is away. The kitchen waits." }), make("div", { class: "actions", id: "alone-here" })] : []);
    }
    clearTimeout(state.waitTimer);
    if (away) offerAlone();
    else element("alone-here")?.replaceChildren();
  }

  // Who has waited for a while may go on alone.
  function offerAlone() {
    clearTimeout(state.waitTimer);
    state.waitTimer = setTimeout(() => {
      if (state.other === "away") element("alone-here")?.replaceChildren(button("End the tasks without them", () => send({ do: "alone" })));
    }, ALONE_AFTER);
  }

  // ── words

  const text = element("text");
  const answerBox = element("answer");
  function say(kind, ...parts) {
    answerBox.dataset.state = kind;
    answerBox.replaceChildren(...parts);
  }
  const nameOf = (i) => state.opened.recordings[0].agent_words[i];

  function understood(message) {
    if (!state.opened) return;
    const said = "“" + message.text + "”";
    if (message.ends) say("sure", message.ended.length ? "Ended. The team goes back to its work." : "Nothing holds, so there was nothing to end.");
    else if (message.question) {
      say("unsure", make("b", { text: message.question }));
    } else if (message.nothing) say("sure", said + " asks for nothing that the team can do now.");
    else if (message.unsure) say("unsure", make("b", { text: "The team is not sure what you mean by " + said + ". Please say it in other words." }));
    else if (message.refused.length) say("unsure", make("b", { text: said + " cannot be done now." }));
    else say("sure", make("span", { text: "The team has heard " + said + (message.agents ? " (" + list(message.agents.map(nameOf)) + ")" : "") + "." }));
  }

  function speak(sentence) {
    if (!sentence.trim()) return;
    if (send({ do: "say", text: sentence })) text.value = ""; // otherwise what was typed stays
  }

  function chips(examples) {
    element("chips").replaceChildren(...(examples.length ? [make("span", { text: "Such as" })] : []), ...examples.map((one) => button(one, () => speak(one))));
  }

  element("speak").addEventListener("submit", (event) => {
    event.preventDefault();
    speak(text.value);
  });
  element("end").addEventListener("click", () => send({ do: "end" }));
  element("skip").addEventListener("click", () => send({ do: "skip" }));
  MavicMic.start({ button: element("mic"), text, speak, complain: (why) => say("error", why) });
  const pad = MavicPad.start(send, () => say("error", "Your way is blocked."), (agent) => say("error", "You are in the way of " + nameOf(agent) + "."));

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "TEXTAREA"].includes(event.target.tagName)) return;
    if (!state.board || element("leaving").open || !(event.key in pad.keys)) return;
    send({ do: "drive", macro: pad.keys[event.key] });
    event.preventDefault();
  });

  // ── leaving

  const leaving = element("leaving");
  element("leave").addEventListener("click", () => leaving.showModal());
  element("stay").addEventListener("click", () => leaving.close());
  for (const [id, keep] of [["leave-keep", true], ["leave-forget", false]]) {
    element(id).addEventListener("click", () => {
      leaving.close();
      send({ do: "leave", keep });
    });
  }

  addEventListener("resize", measure);
  new ResizeObserver(measure).observe(element("bar"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", measure);
  connect();
})();
