// An address that holds what is played: world, teams, seed, and what was said when. It stands behind the # of the page.
const MavicAddress = (() => {
  "use strict";

  const whole = (text) => (/^\d{1,10}$/.test(text || "") ? Number(text) : null);
  const numbers = (text) => (text ? text.split(",").map(whole).filter((n) => n !== null) : null);

  // Returns {world, teams, seed, script} of an address, or null if it names no world.
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
    return { world: parts.get("world"), teams, seed: whole(parts.get("seed")) ?? 1, script };
  }

  function write({ world, teams, seed, log }) {
    const parts = new URLSearchParams({ world, teams: teams.join(","), seed: String(seed) });
    for (const { time, text, agents, hold } of log) {
      parts.append("say", [time, (agents || []).join(","), hold || "", text].join("|"));
    }
    return "#" + parts.toString();
  }

  return { read, write };
})();
