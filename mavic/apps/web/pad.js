"use strict";
// Driving an agent by keys and by touch.
const MavicPad = (() => {
  const MOVES = { ArrowUp: "UP", ArrowLeft: "LEFT", ArrowDown: "DOWN", ArrowRight: "RIGHT" };
  const SIGNS = { UP: "↑", LEFT: "←", DOWN: "↓", RIGHT: "→" };
  const LETTERS = "asdfghjklqwtyuiopzxcvbnm1234567890"; // r, e, /, . and space are taken
  const BLOCKED = 6; // moves in vain after which the way counts as blocked
  const { make } = MavicStage;
  const element = (id) => document.getElementById(id);
  const keys = {}; // macros by key

  // `send` sends a message; `blocked` is called when the driven agent cannot move.
  function start(send, blocked) {
    function fill(message) {
      const macros = message.seat === null ? [] : message.macros[message.seat];
      element("pad").hidden = !macros.length;
      for (const key of Object.keys(keys)) delete keys[key];
      const called = (macro) => message.macro_words[message.seat][macros.indexOf(macro)];
      const button = (macro, key, label, class_) => {
        const made = make("button", { type: "button", "data-macro": macro, "aria-label": called(macro), title: called(macro), class: class_ }, label);
        if (key && !(key in MOVES)) made.append(make("kbd", { text: key }));
        if (key) keys[key] = macro;
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
      element("macros").replaceChildren(...rest.map((macro, i) => button(macro, LETTERS[i], called(macro), "")));
    }

    // Shows what the driven agent does, and says so if its way is blocked.
    function tell(frames, seat) {
      const one = frames.at(-1);
      const doing = one.over ? "" : one.agents[seat].macro;
      const places = frames.slice(-BLOCKED).map((frame) => frame.scene.sprites.filter((s) => s.shape === "robot")[seat]);
      const moving = frames.slice(-BLOCKED).every((frame) => frame.agents[seat].macro in SIGNS);
      if (frames.length >= BLOCKED && moving && places.every((at) => at.x === places[0].x && at.y === places[0].y)) blocked();
      for (const button of element("pad").querySelectorAll("button")) button.classList.toggle("running", button.dataset.macro === doing);
    }

    return { fill, tell, keys };
  }

  return { start };
})();
