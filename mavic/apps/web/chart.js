// Lines over time on a canvas.
const MavicChart = (() => {
  "use strict";

  const { theme, short, FONT } = MavicPaint;

  // Draws lines over time and a cursor, in front of `bands` of {from, to, colour}. A line of `series` is {name, points
  // (null: none), colour ("ink": that of texts), dash, bold, starts (points that begin a new line)}. `range` is the
  // scale, [lowest, highest]; without it the series give it.
  function draw(canvas, series, at, last, bands = [], range = null) {
    const { ink, paper, grid: rule } = theme();
    const ratio = globalThis.devicePixelRatio || 1;
    const [wide, high] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio].map(Math.round);
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = paper;
    pen.fillRect(0, 0, wide, high);
    const values = series.flatMap((s) => s.points.filter((v) => v !== null));
    if (!values.length) return;
    const [low, top] = range || [Math.min(...values), Math.max(...values)];
    const size = 11 * ratio;
    const left = 3.6 * size;
    const pad = size * 0.8;
    const x = (i) => left + ((wide - left - 4 * ratio) * i) / Math.max(last, 1);
    const y = (v) => high - pad - ((high - 2 * pad) * (v - low)) / (top - low || 1);
    for (const band of bands) {
      pen.fillStyle = band.colour;
      pen.fillRect(x(band.from), 0, Math.max(x(band.to) - x(band.from), 2 * ratio), high);
    }
    pen.font = size + "px " + FONT;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of new Set([low, (low + top) / 2, top])) {
      pen.fillStyle = ink;
      pen.fillText(short(value, top - low < 1 ? 2 : 1), left - 4 * ratio, y(value));
      pen.fillStyle = rule;
      pen.fillRect(left, Math.round(y(value)), wide - left, 1);
    }
    for (const { points, colour, dash, bold, starts = [] } of series) {
      pen.beginPath();
      let down = false;
      points.forEach((value, i) => {
        if (value === null) {
          down = false;
          return;
        }
        if (down && !starts.includes(i)) pen.lineTo(x(i), y(value));
        else pen.moveTo(x(i), y(value));
        down = true;
      });
      pen.strokeStyle = colour === "ink" ? ink : colour;
      pen.lineWidth = (bold ? 2.4 : 1) * ratio;
      pen.setLineDash((dash || []).map((d) => d * ratio));
      pen.stroke();
      pen.setLineDash([]);
    }
    pen.fillStyle = ink;
    pen.fillRect(Math.round(x(at)), 0, Math.max(1, ratio), high);
  }

  // The scale that shows all series of all charts, so that teams side by side can be compared.
  function rangeOf(all) {
    const values = all.flatMap((series) => series.flatMap((line) => line.points.filter((v) => v !== null)));
    return values.length ? [Math.min(...values), Math.max(...values)] : null;
  }

  return { draw, rangeOf };
})();
