// The time line of a recording: when each instruction began and ended, whether it was followed, and what happened.
const MavicTimeline = (() => {
  "use strict";

  const { words } = MavicPaint;
  const { make, kindWord } = MavicStage;

  // When each instruction began and ended, and whether it was followed.
  function spansOf({ frames }) {
    const spans = new Map();
    frames.forEach((frame, i) => {
      for (const active of [frame.instruction, frame.also].filter(Boolean)) {
        const span = spans.get(active.number) || { from: i, text: active.text, kind: active.kind, verdict: "" };
        spans.set(active.number, { ...span, to: Math.min(i + 1, frames.length - 1) });
      }
      for (const verdict of frame.verdicts) {
        const span = spans.get(verdict.number);
        if (span) span.verdict = verdict.followed ? "followed" : "broken";
      }
    });
    return [...spans.values()];
  }

  // Fills the element `track` with the time line of a recording; `last` is the index at its right end.
  function fill(track, recording, last) {
    const left = (i) => (100 * i) / Math.max(last, 1) + "%";
    const parts = spansOf(recording).map((span) => {
      const sign = { followed: "✓ ", broken: "✗ ", "": "" }[span.verdict];
      const kind = kindWord(recording, span.kind);
      const title = kind + ": “" + span.text + "” " + ({ followed: "followed", broken: "not followed" }[span.verdict] || "not counted");
      const made = make("div", { class: "span " + span.verdict, title, text: sign + kind });
      made.style.left = left(span.from);
      made.style.width = left(span.to - span.from);
      return made;
    });
    recording.frames.forEach((frame, i) => {
      if (!frame.events.length) return;
      const kind = frame.events.includes("solved") ? "mark solved" : "mark";
      const made = make("div", { class: kind, title: frame.events.map(words).join(", ") + ", move " + frame.time });
      made.style.left = left(i);
      parts.push(made);
    });
    const done = make("div", { class: "done" });
    done.style.left = left(recording.frames.length - 1);
    const now = make("div", { class: "now" });
    track.replaceChildren(done, ...parts, now);
    return now;
  }

  return { fill };
})();
