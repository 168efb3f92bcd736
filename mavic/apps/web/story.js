"use strict";
// The first minute: one team, one sentence at the right moment, a guess, and what became of it. All words come from the
// data; here they are shown in time.
(() => {
  const PACE = 4; // ticks a second
  const HURRY = 20; // ticks a second while nothing new happens
  const NEWS = 12; // ticks after the sentence, before and after which nothing new happens in a long episode
  const LONG = 100; // ticks of an episode that is hurried
  const PLAY = "M5 2.5v15l12-7.5z";
  const PAUSE = "M4 3h4v14H4zM12 3h4v14h-4z";
  const { make, plural } = MavicStage;
  const element = (id) => document.getElementById(id);
  const data = JSON.parse(element("data").textContent);
  const chapters = data.chapters.map((chapter) => ({ ...chapter, recording: MavicPaint.unpack(chapter.recording) }));
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const state = { chapter: 0, at: 0, shown: -1, playing: false, before: null, guess: null, board: null };
  const bar = element("bar");

  const chapter = () => chapters[state.chapter];
  const lastOf = () => chapter().recording.frames.length - 1;
  const asking = (index) => index === chapter().at && state.guess === null;

  function open(number) {
    Object.assign(state, { chapter: number, at: 0, shown: -1, guess: null });
    const { recording } = chapter();
    bar.before(element("tell")); // it stays when the stage is cleared
    element("stage").replaceChildren();
    state.board = MavicStage.board(data.look, element("stage"), [recording], { unfolded: () => redraw() });
    state.board.views[0].panel.prepend(element("tell"));
    state.board.legend();
    element("scrub").max = lastOf();
    element("race").replaceChildren(...chapter().race.map(([who]) => make("li", {}, make("span", { class: "who", text: who }), make("span", { class: "lane" }, make("i")), make("span", { class: "time" }))));
    element("chapter").textContent = "The team " + recording.name;
    element("note").textContent = chapter().note;
    scrollTo(0, 0);
    redraw();
    play(!calm.matches);
  }

  function redraw() {
    if (!state.board) return;
    if (state.shown < 0) show(); // all that stands above the picture is there
    state.board.measure(bar);
    state.shown = -1;
    show();
  }

  function show() {
    const index = Math.min(Math.floor(state.at + 1e-9), lastOf());
    const view = state.board.views[0];
    const frame = view.recording.frames[index];
    const next = view.recording.frames[index + 1];
    const share = calm.matches ? 0 : state.at - index;
    const ask = asking(index); // the answer is not given away: they still do what they did
    const before = view.recording.frames[Math.max(0, index - 1)];
    state.board.paint(view, ask ? MavicPaint.between(frame.scene, before.scene, 1e-6, -1) : MavicPaint.between(frame.scene, next && next.scene, share), ask ? before : frame);
    race(Math.min(state.at, lastOf()));
    if (index === state.shown) return;
    state.shown = index;
    state.board.tell(view, ask ? index - 1 : index);
    state.board.chart(view, index, lastOf());
    element("scrub").value = index;
    element("scrub").setAttribute("aria-valuetext", "move " + index + " of " + lastOf());
    // the time line tells what has happened and gives nothing away
    MavicTimeline.fill(element("track"), { ...view.recording, frames: view.recording.frames.slice(0, index + 1) }, lastOf()).style.left = (100 * index) / Math.max(lastOf(), 1) + "%";
    tell(index);
  }

  // What is said at a move: before the sentence, with it, after it, and at the end.
  function tell(index) {
    const { at, opening, asking: question, lines, ending, detail, choices } = chapter();
    const over = index >= lastOf();
    const later = lines.filter(([tick]) => tick <= index && index > at).at(-1);
    const ask = asking(index);
    element("line").textContent = over ? ending : ask || index === at ? question : later ? later[1] : index > at ? "They have been told." : opening;
    element("speech").hidden = index < at || over;
    element("speech").textContent = "“" + data.words + "”";
    element("choices").replaceChildren(...(ask ? [make("b", { text: "What will happen?" }), ...choices.map(([text, right]) => button(text, () => guess(text, right)))] : []));
    element("guess").hidden = state.guess === null || index <= at;
    if (state.guess) {
      element("guess").textContent = "You guessed: " + state.guess.text + (over ? (state.guess.right ? ". That is what happened. ✓" : ". Something else happened.") : ".");
    }
    element("detail").textContent = over ? detail : "";
    element("onward").replaceChildren(...(over ? onward() : index === 0 && !state.playing ? [button("Play", () => play(true), true)] : []));
  }

  function button(text, act, main = false) {
    const made = make("button", { type: "button", text, class: main ? "main" : "" });
    made.addEventListener("click", act);
    return made;
  }

  function onward() {
    const again = button("Watch it again", () => open(state.chapter));
    if (state.chapter + 1 < chapters.length) return [button(chapter().onward, () => open(state.chapter + 1), true), again];
    const [words, href] = data.turn;
    return [make("a", { class: "button main", href, text: words }), again];
  }

  function guess(text, right) {
    state.guess = { text, right };
    play(true);
  }

  // The finish line: how far each has come, and when it was done.
  function race(at) {
    const longest = Math.max(...chapter().race.map(([, ticks]) => ticks));
    [...element("race").children].forEach((row, i) => {
      const [, ticks, done] = chapter().race[i];
      const there = at >= ticks;
      row.className = there ? (done ? "there" : "failed") : "";
      row.querySelector("i").style.width = (100 * Math.min(at, ticks)) / longest + "%";
      const words = !there ? "" : done ? "✓ " + plural(ticks, "move") : "✗ not done";
      const time = row.querySelector(".time");
      if (time.textContent !== words) time.textContent = words;
    });
  }

  function pace() {
    const { at } = chapter();
    const far = state.at > at + NEWS || state.at < at - NEWS;
    return lastOf() > LONG && far ? HURRY : PACE;
  }

  function play(on) {
    if (on && asking(Math.floor(state.at + 1e-9))) state.guess = { text: "nothing", right: false };
    if (on && state.at >= lastOf()) Object.assign(state, { at: 0, guess: null });
    state.playing = on;
    state.before = null;
    element("face").setAttribute("d", on ? PAUSE : PLAY);
    element("play").setAttribute("aria-label", on ? "Pause" : "Play");
    if (!on) state.at = Math.floor(state.at + 1e-9);
    state.shown = -1;
    show();
    if (on) requestAnimationFrame(run);
  }

  function run(time) {
    if (!state.playing) return;
    const seconds = state.before === null ? 0 : Math.min((time - state.before) / 1000, 0.25);
    state.before = time;
    const next = state.at + seconds * pace();
    const { at } = chapter();
    const stop = state.guess === null && state.at < at && next >= at ? at : lastOf();
    state.at = Math.min(next, stop);
    if (state.at >= stop) {
      play(false);
      return;
    }
    show();
    requestAnimationFrame(run);
  }

  function go(index) {
    state.at = Math.max(0, Math.min(lastOf(), index));
    play(false);
  }

  element("play").addEventListener("click", () => play(!state.playing));
  element("again").addEventListener("click", () => open(0));
  element("scrub").addEventListener("input", (event) => go(Number(event.target.value)));
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const tag = event.target.tagName;
    if (event.key === " " && !["BUTTON", "SUMMARY", "A"].includes(tag)) play(!state.playing);
    else if (event.key === "ArrowLeft") go(Math.ceil(state.at) - 1);
    else if (event.key === "ArrowRight") go(Math.floor(state.at) + 1);
    else return;
    event.preventDefault();
  });

  element("skip").href = data.turn[1];
  element("skip").textContent = data.turn[0];
  open(0);
})();
