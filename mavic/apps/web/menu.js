"use strict";
// A click on a thing or an agent offers what can be said about it. The same menu opens by keyboard.
const MavicMenu = (() => {
  const { make } = MavicStage;

  // `page` is {menu: element, floor(): the lowest place of its end, opened(), holding(), tell(words, agents),
  // end(kind, agents), address(agent)}.
  function start({ menu, floor, opened, holding, tell, end, address }) {
    let back = null; // what gets the focus when the menu closes
    const nameOf = (i) => opened().recordings[0].agent_words[i];

    // The phrase of a kind that names the thing, if one does.
    function phraseOf(ask, thing) {
      const parts = thing.split(" ");
      return ask.phrases.find((phrase) => parts.every((part) => phrase.split(" ").includes(part))) || ask.phrase;
    }

    const about = (thing) => opened().asks.filter((ask) => ask.things.includes(thing)).sort((a, b) => a.things.length - b.things.length);

    function itemsOf({ agent, thing }) {
      const over = holding().filter((one) => (thing ? about(thing).some((ask) => ask.kind === one.kind) : one.agents && one.agents.includes(agent)));
      const ends = over.map((one) => ["End “" + one.text + "”", () => end(one.kind, one.agents)]);
      if (thing) return [...ends, ...about(thing).map((ask) => [phraseOf(ask, thing), () => tell(phraseOf(ask, thing), null), ask.meaning])];
      const able = opened().asks.filter((ask) => ask.agents.includes(agent));
      const acts = able.filter((ask) => !ask.things.length || able.length < 5);
      return [
        ...ends,
        ...acts.map((ask) => [nameOf(agent) + ", " + ask.phrase, () => tell(ask.phrase, [agent]), ask.meaning]),
        ...(able.length ? [["Say something to " + nameOf(agent) + " alone", () => address(agent)]] : []),
      ];
    }

    // Opens the menu of {agent} or {thing} at a point of the window, or the list of all of them without one.
    function open(what, x, y, from) {
      back = from || document.activeElement;
      const name = what ? what.thing || nameOf(what.agent) : "What is it about?";
      const items = what ? itemsOf(what) : everything(x, y);
      const rows = items.map(([label, act, title]) => {
        const item = make("button", { type: "button", role: "menuitem", tabindex: "-1", text: label, ...(title ? { title } : {}) });
        item.addEventListener("pointerenter", () => item.focus({ preventScroll: true })); // one is marked, not two
        item.addEventListener("click", () => {
          close();
          act();
        });
        return item;
      });
      if (!rows.length) rows.push(make("span", { class: "quiet", text: "Nothing can be asked about it." }));
      menu.replaceChildren(make("p", { text: name }), ...rows);
      menu.setAttribute("aria-label", name);
      menu.hidden = false;
      menu.toggleAttribute("data-all", !what);
      const { width, height } = menu.getBoundingClientRect();
      menu.style.left = Math.max(4, Math.min(x, innerWidth - width - 4)) + "px";
      menu.style.top = Math.max(4, Math.min(y, floor() - height - 4)) + "px";
      (menu.querySelector("button") || menu).focus({ preventScroll: true });
    }

    function everything(x, y) {
      const things = [...new Set(opened().asks.flatMap((ask) => ask.things))];
      const agents = opened().recordings[0].agents.map((_, agent) => [nameOf(agent), () => open({ agent }, x, y, back)]);
      return [...things.map((thing) => [thing, () => open({ thing }, x, y, back)]), ...agents];
    }

    function close() {
      if (menu.hidden) return;
      menu.hidden = true;
      if (back && back.focus) back.focus({ preventScroll: true });
    }

    menu.addEventListener("keydown", (event) => {
      const items = [...menu.querySelectorAll("button")];
      const at = items.indexOf(document.activeElement);
      const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
      event.stopPropagation(); // the page's own keys do not act meanwhile
      if (event.key in moves) items.at(moves[event.key] % items.length).focus();
      else if (event.key === "Escape" || event.key === "Tab") close();
      else return;
      event.preventDefault();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!menu.contains(event.target)) menu.hidden = true;
    });

    return { open, close };
  }

  return { start };
})();
