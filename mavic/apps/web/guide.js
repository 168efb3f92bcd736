// The guided twenty seconds: the page shows by itself what one does here, until somebody touches it.
const MavicGuide = (() => {
  "use strict";

  const LETTER = 45; // milliseconds between two letters that it types

  // `page` is {caption(text, share), type(text), say(text), end()}; `facts` are {job, example, teams}.
  function stepsOf(page, { job, example, teams }) {
    const both = teams.length > 1 ? "Two teams do the same work: " + teams.join(" and ") + "." : "This is the team at work.";
    return [
      [0, () => page.caption(both + " " + job)],
      [4500, () => page.caption("Now somebody tells them: “" + example + "”.")],
      ...[...example].map((_, i) => [5500 + LETTER * i, () => page.type(example.slice(0, i + 1))]),
      [5800 + LETTER * example.length, () => page.say(example)],
      [8500, () => page.caption("What it is about is marked. ✓ and ✗ show who complies, and the line above each picture shows whether the work goes on.")],
      [15500, () => page.caption("The instruction ends. " + (teams.length > 1 ? "Both go" : "The team goes") + " back to work.")],
      [15600, () => page.end()],
      [20000, () => page.stop()],
    ];
  }

  // Starts the guide and returns {stop, running}. A touch, a click or a key stops it.
  function start(page, facts) {
    let on = true;
    let held = false;
    const wrapped = { ...page, say: (text) => { held = true; page.say(text); }, end: () => { held = false; page.end(); }, stop: () => stop(true) };
    const timers = stepsOf(wrapped, facts).map(([at, act]) => setTimeout(act, at));
    const touched = (event) => {
      if (event.isTrusted) stop(false);
    };
    const kinds = ["pointerdown", "keydown", "wheel", "touchstart"];
    for (const kind of kinds) addEventListener(kind, touched, { capture: true, passive: true });
    function stop(finished) {
      if (!on) return;
      on = false;
      timers.forEach(clearTimeout);
      for (const kind of kinds) removeEventListener(kind, touched, { capture: true });
      if (held) page.end();
      page.type("");
      page.stop(finished);
    }
    return { stop, running: () => on };
  }

  // What the guide does to the page: captions, typing, saying and ending.
  function page(element, tell, end, stopped) {
    const type = (words) => (element("text").value = words);
    return {
      type,
      end,
      caption: (words) => {
        element("guide").hidden = false;
        element("caption").textContent = words;
      },
      say: (words) => {
        tell(words, null);
        type("");
      },
      stop: () => {
        element("guide").hidden = true;
        stopped();
      },
    };
  }

  return { start, page };
})();
