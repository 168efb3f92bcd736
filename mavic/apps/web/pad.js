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

  // The agent that wants to pass and cannot, because the driven agent stands still beside it; -1 for none.
  // A macro whose way is blocked ends, so such an agent decides anew in every tick and stays where it is.
  function waiting(frames, seat) {
    const last = frames.slice(-BLOCKED);
    if (last.length < BLOCKED || last.at(-1).over) return -1;
    const places = last.map((frame) => frame.scene.sprites.filter((s) => s.shape === "robot"));
    const still = (i) => places.every((at) => at[i] && at[i].x === places[0][i].x && at[i].y === places[0][i].y);
    const beside = (i) => Math.abs(places[0][i].x - places[0][seat].x) + Math.abs(places[0][i].y - places[0][seat].y) === 1;
    const tries = (i) => last.every(({ agents }) => agents[i].decided && !MavicStage.RESTS.includes(agents[i].macro));
    return still(seat) ? last[0].agents.findIndex((_, i) => i !== seat && still(i) && beside(i) && tries(i)) : -1;
  }

  // `send` sends a message; `blocked` is called when the driven agent cannot move, `inTheWay(agent)` when it stands in
  // the way of another.
  function start(send, blocked, inTheWay) {
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

    // Shows what the driven agent does, and says so if its way is blocked or if it stands in another's way.
    function tell(frames, seat) {
      const one = frames.at(-1);
      const doing = one.over ? "" : one.agents[seat].macro;
      const places = frames.slice(-BLOCKED).map((frame) => frame.scene.sprites.filter((s) => s.shape === "robot")[seat]);
      const moving = frames.slice(-BLOCKED).every((frame) => frame.agents[seat].macro in SIGNS);
      if (frames.length >= BLOCKED && moving && places.every((at) => at.x === places[0].x && at.y === places[0].y)) blocked();
      const other = waiting(frames, seat);
      if (other >= 0 && !moving) inTheWay(other);
      for (const button of element("pad").querySelectorAll("button")) button.classList.toggle("running", button.dataset.macro === doing);
    }

    return { fill, tell, keys };
  }

  return { start, waiting };
})();
