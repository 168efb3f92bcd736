// An address that holds what is played: world, teams, seed, and what was said when. It stands behind the # of the page.
const MavicAddress = (() => {
  "use strict";

  const whole = (text) => (/^\d{1,10}$/.test(text || "") ? Number(text) : null);
  const numbers = (text) => (text ? text.split(",").map(whole).filter((n) => n !== null) : null);

  // Returns {world, teams, seat, seed, script} of an address, or null if it names no world.
  function read(hash) {
    const parts = new URLSearchParams(hash.replace(/^#/, ""));
    if (!parts.get("world")) return null;
    const script = parts.getAll("say").slice(0, 20).flatMap((line) => {
      const [time, agents, hold, ...words] = line.split("|");
      if (whole(time) === null) return [];
      const chosen = numbers(agents);
      return [{ time: whole(time), agents: chosen && chosen.length ? chosen : null, hold: whole(hold) || null, text: words.join("|").slice(0, 400) }];
    });
    const teams = (parts.get("teams") || "").split(",").filter(Boolean).slice(0, 2);
    const seat = parts.get("seat") === "guest" ? "guest" : whole(parts.get("seat"));
    return { world: parts.get("world"), teams, seat, seed: whole(parts.get("seed")) ?? 1, script };
  }

  function write({ world, teams, seat, seed, log }) {
    const parts = new URLSearchParams({ world, teams: teams.join(","), seed: String(seed) });
    if (seat !== null) parts.set("seat", String(seat));
    for (const { time, text, agents, hold } of log) {
      parts.append("say", [time, (agents || []).join(","), hold || "", text].join("|"));
    }
    return "#" + parts.toString();
  }

  // Puts what is open into the address, without loading the page. `fresh`: one can go back to what was open before.
  function keep(facts, fresh) {
    const hash = write(facts);
    if (hash !== location.hash) history[fresh ? "pushState" : "replaceState"](null, "", hash);
  }

  return { read, write, keep };
})();
