"use strict";
// What is said back: the answer to a sentence, and the instructions that hold, each of which can be removed.
const MavicTalk = (() => {
  const { make, list, kindWord } = MavicStage;

  // `page` is {box: the chips' element, answer(state, ...parts), quieten(), remember(entry), send(message), opened(),
  // teams()}.
  function start({ box, answer, quieten, remember, send, opened, teams }) {
    const nameOf = (i) => opened().recordings[0].agent_words[i];
    const toWhom = (agents) => (agents ? list(agents.map(nameOf)) : "");
    const meaningOf = (kind) => kindWord(opened().recordings[0], kind);
    const brief = (said) => (said.length > 60 ? said.slice(0, 59) + "…" : said);
    const line = (...parts) => make("span", {}, ...parts);
    const bold = (text) => make("b", { text });
    const meanings = (kinds) => "“" + kinds.map(meaningOf).join("” and “") + "”";

    // A person's own words, or for any of the phrases that a kind is trained with the one that is offered.
    function wordsOf(one) {
      const ask = opened().asks.find(({ kind }) => kind === one.kind);
      return ask && [ask.kind, ...ask.phrases].includes(one.text) ? ask.phrase : one.text;
    }

    // A button for each offer; the server knows what they stand for.
    function buttons(offers) {
      const labelOf = (one) => (one.agents ? toWhom(one.agents) + ": " : "") + brief(wordsOf(one));
      return make("span", { class: "closest" }, ...offers.map((offer, number) => {
        const title = offer.all.map((one) => meaningOf(one.kind)).join(", and ");
        const button = make("button", { type: "button", text: offer.all.map(labelOf).join(" + "), title });
        button.addEventListener("click", () => send({ do: "choose", number }));
        return button;
      }));
    }

    function ended(message) {
      const left = message.left.length ? " " + meanings(message.left) + (message.left.length > 1 ? " go on." : " goes on.") : "";
      if (message.ended.length) {
        const whose = message.agents ? " for " + toWhom(message.agents) : "";
        const what = message.left.length || whose ? " " + meanings(message.ended) + " no longer holds" + whose + "." : " The team goes back to its work.";
        answer("sure", line(bold("Ended."), what + left));
      } else if (left) answer("sure", line(bold("Nothing ended."), " “" + brief(message.text) + "” is about nothing that holds." + left));
      else answer("sure", line(bold("Nothing holds."), " “" + brief(message.text) + "” ends what holds, and nothing does."));
      remember({ text: message.text, note: "ends what holds", state: "ended" });
    }

    function unclear(message) {
      const said = "“" + brief(message.text) + "”";
      const offers = message.offers.length ? [make("span", { text: message.nothing ? "You could say" : "Did you mean" }), buttons(message.offers)] : [];
      if (message.question) {
        answer("unsure", bold(message.question), buttons(message.offers));
        remember({ text: message.text, note: "asked back", state: "unsure" });
      } else if (message.nothing) {
        answer("unsure", line(bold("Nothing to do."), " " + said + " asks for nothing that the team can do. It goes on as before."), ...offers);
        remember({ text: message.text, note: "asks for nothing", state: "heard" });
      } else {
        const percent = Math.round(100 * message.probability) + " %";
        const why = message.note || (message.probability < 0.3 || message.kind === "none" ? "it seems to ask for nothing that the team can do" : "best guess: " + (message.kind === "end" ? "what holds is to end" : meaningOf(message.kind)) + ", " + percent);
        answer("unsure", line(bold("I'm not sure what you mean by " + said + "."), " (" + why + ")"), ...offers);
        remember({ text: message.text, note: "not understood", state: "unsure" });
      }
    }

    function understood(message) {
      if (message.ends) return ended(message);
      if (message.unsure) return unclear(message);
      const parts = [];
      const quiet = (text) => parts.push(make("span", { text }));
      if (message.kind !== "none") {
        parts.push(line("Understood: ", bold(meaningOf(message.kind)), message.probability < 1 ? " (" + Math.round(100 * message.probability) + " %)" : ""));
        const [first, second] = [message.agents, message.also_agents].map((agents) => "to " + (agents ? toWhom(agents) : "everybody"));
        const last = message.also ? second : first;
        if (first !== last) quiet(first);
        if (message.also) parts.push(line("and: ", bold(meaningOf(message.also))));
        if (first !== last || last !== "to everybody") quiet(last);
      }
      if (message.replaced.length) quiet("instead of " + meanings(message.replaced));
      if (message.joins.length) quiet("beside " + meanings(message.joins));
      if (message.queued.length) quiet("then: “" + message.queued.join("”, then “") + "”");
      if (message.unlearnt) quiet("This team was not trained with it and may not follow.");
      if (message.nearest.length) parts.push(make("span", { class: "quiet", text: "nearest phrase: “" + message.nearest[0].text + "”" }));
      if (message.refused.length) parts.unshift(bold("It cannot be done now, so it was not given" + (teams() > 1 ? " to " + list(message.refused) : "") + "."));
      answer("sure", ...parts);
      remember({ text: message.text, kind: message.kind, note: message.kind === "none" ? "waits its turn" : "", state: message.refused.length ? "refused" : "given", number: null, verdicts: Array(teams()).fill(null) });
    }

    // Shows what holds and what waits. Each chip has a button that removes it.
    let shown = "";
    function holds({ holding, queued }) {
      const key = JSON.stringify([holding, queued]);
      if (key === shown) return;
      shown = key;
      const chip = (text, about, title, message) => {
        const button = make("button", { type: "button", text: "×", "aria-label": title, title });
        button.addEventListener("click", () => {
          send(message);
          quieten(); // it told of what held until now
          const next = box.querySelector("button");
          if (next) next.focus({ preventScroll: true });
        });
        return make("li", { class: about === "then" ? "hold waits" : "hold" }, ...(about ? [make("small", { text: about })] : []), make("span", { text: brief(text), title: text }), button);
      };
      box.replaceChildren(
        ...holding.map((one) => chip(one.text, toWhom(one.agents), "End “" + brief(one.text) + "”", { do: "end", kind: one.kind, agents: one.agents })),
        ...queued.map((text, number) => chip(text, "then", "Do not say “" + brief(text) + "”", { do: "end", queued: number })),
      );
      box.hidden = !box.children.length;
    }

    return { understood, holds };
  }

  return { start };
})();
