"use strict";
// Saving what was played as a file.
const MavicSave = (() => {
  const { make } = MavicStage;

  // `links` fetch the recordings; `status(words, bad)` tells how it goes; `world()` names the file.
  function start(links, status, world) {
    // A GIF takes its time; the page says so while it is made.
    async function save(event) {
      const link = event.currentTarget;
      if (!link.href) return;
      event.preventDefault();
      if (link.hasAttribute("aria-busy")) return;
      const began = performance.now();
      const count = () => status("Making the " + link.dataset.what + "… " + Math.round((performance.now() - began) / 1000) + " s");
      link.setAttribute("aria-busy", "true");
      count();
      const timer = setInterval(count, 1000);
      try {
        const got = await fetch(link.href);
        if (!got.ok) throw new Error(await got.text());
        const file = make("a", { href: URL.createObjectURL(await got.blob()), download: "mavic-" + world() + link.dataset.ending });
        file.click();
        setTimeout(() => URL.revokeObjectURL(file.href), 60000);
        status("");
      } catch (error) {
        status("It could not be saved: " + error.message, true);
      }
      clearInterval(timer);
      link.removeAttribute("aria-busy");
    }
    for (const link of links) link.addEventListener("click", save);
  }

  return { start };
})();
