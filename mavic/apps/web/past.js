"use strict";
// What was said, what it was understood as, and whether it was followed.
const MavicPast = (() => {
  const PAST = 40; // sentences that are remembered
  const { make } = MavicStage;

  // `box` and `empty` are elements; `kindWord(kind)` is what a kind is called; `recordings()` are the teams;
  // `speak(words)` says a sentence again.
  function start({ kindWord, box, empty, recordings, speak }) {
    const entries = [];

    function remember(entry) {
      entries.push(entry);
      if (entries.length > PAST) entries.shift();
      tellPast();
    }

    // Notes the verdict on each instruction of the past. Verdicts come in the order in which instructions were given.
    function note(message) {
      let changed = false;
      message.frames.forEach((one, i) => {
        const open_ = (entry) => entry.state === "given" && entry.verdicts.length === message.frames.length;
        if (one.instruction) {
          const entry = entries.filter(open_).at(-1);
          if (entry && entry.kind === one.instruction.kind && !(entry.numbers || [])[i]) {
            entry.numbers = entry.numbers || [];
            entry.numbers[i] = one.instruction.number;
          }
        }
        for (const verdict of one.verdicts) {
          const entry = entries.find((e) => e.numbers && e.numbers[i] === verdict.number && e.kind === verdict.kind);
          if (entry && entry.verdicts[i] === null) {
            entry.verdicts[i] = verdict.followed;
            changed = true;
          }
        }
      });
      if (changed) tellPast();
    }

    function tellPast() {
      empty.hidden = entries.length > 0;
      box.replaceChildren(...[...entries].reverse().map((entry) => {
        const item = make("li", {}, make("q", { text: entry.text }), make("small", { text: entry.note || kindWord(entry.kind) }));
        if (entry.state === "refused") item.append(make("span", { class: "bad", text: "could not be done" }));
        (entry.verdicts || []).forEach((followed, i) => {
          if (followed === null) return;
          const who = recordings().length > 1 && recordings()[i] ? recordings()[i].name + " " : "";
          item.append(make("span", { class: followed ? "good" : "bad", text: who + (followed ? "✓ followed" : "✗ not followed") }));
        });
        const again = make("button", { type: "button", text: "Say again" });
        again.addEventListener("click", () => speak(entry.text));
        item.append(again);
        return item;
      }));
    }

    return { remember, note, said: () => entries.map((entry) => entry.text) };
  }

  return { start };
})();
