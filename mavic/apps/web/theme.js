// Colours of what is drawn beside the scenes, and of the ground below them, by day and by night.
const MavicTheme = (() => {
  "use strict";

  const dark = globalThis.matchMedia ? matchMedia("(prefers-color-scheme: dark)") : { matches: false };
  const LIGHT = { ink: "#000000", paper: "#ffffff", grid: "#dddddd", tile: "rgb(90 120 160 / 6%)", bands: ["#e9eef5", "#f5ece4"] };
  const DARK = { ink: "#f0f0ee", paper: "#1e2125", grid: "#3a3f45", bands: ["#2b3644", "#40352a"], floor: "#3a4048", fills: { sand: "#a48d68" }, lines: "#4b525b", tile: "rgb(255 255 255 / 4%)", series: { blue: "#5db3ec", red: "#ff9a5c", green: "#4fd0a5", purple: "#b693e0", brown: "#d6a36b", slate: "#8b9199" } };
  const now = () => (dark.matches ? DARK : LIGHT);

  return { now, ACCENT: "#0b5cad" };
})();
