"use strict";
// Suggestions while one types, and what was said before.
const MavicSuggest = (() => {
  const SUGGESTIONS = 8;
  const { make } = MavicStage;

  // `page` is {text, options: elements, kindWord(kind): what it is called, asks(): the kinds, said(): earlier sentences,
  // speak(words)}.
  function start({ text, options, kindWord, asks, said, speak }) {
    const state = { picked: -1, recalled: -1 };

    function suggest() {
      const typed = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = [];
      if (typed.length) {
        for (const ask of asks()) {
          const phrases = [ask.phrase, ...ask.phrases.filter((phrase) => phrase !== ask.phrase)];
          const fitting = phrases.filter((phrase) => typed.every((part) => phrase.toLowerCase().includes(part)));
          found.push(...fitting.slice(0, 2).map((phrase) => ({ phrase, kind: ask.kind })));
        }
      }
      state.picked = -1;
      const shown = found.filter(({ phrase }) => phrase.toLowerCase() !== text.value.toLowerCase()).slice(0, SUGGESTIONS);
      options.replaceChildren(...shown.map(({ phrase, kind }, i) => {
        const item = make("li", { role: "option", id: "option-" + i, "aria-selected": "false" }, make("span", { text: phrase }), make("small", { text: kindWord(kind) }));
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
      const before = said();
      if (!before.length) return;
      const at = state.recalled < 0 ? before.length : state.recalled;
      state.recalled = Math.max(0, Math.min(before.length, at + by));
      text.value = before[state.recalled] || "";
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

    return { suggest, forget: () => (state.recalled = -1) };
  }

  return { start };
})();
