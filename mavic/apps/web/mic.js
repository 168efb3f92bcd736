"use strict";
// Speech: where the browser can recognise it, a button listens, and what it heard goes the way of typed words.
const MavicMic = (() => {
  const WHY = {
    "not-allowed": "The browser does not allow this page to listen.",
    "service-not-allowed": "The browser does not allow this page to listen.",
    "audio-capture": "There is no microphone.",
    network: "The browser's speech service cannot be reached.",
    "no-speech": "Nothing was heard.",
  };

  // `page` is {button, text: elements, speak(words), complain(words)}.
  function start({ button, text, speak, complain }) {
    const Recognition = window.SpeechRecognition || window.webkitSpeechRecognition;
    button.hidden = !Recognition;
    if (!Recognition) return;
    let listening = null;

    function stop() {
      button.setAttribute("aria-pressed", "false");
      listening = null;
    }

    function listen() {
      const heard = new Recognition();
      Object.assign(heard, { lang: "en-US", interimResults: true, continuous: false });
      heard.addEventListener("result", (event) => {
        const results = [...event.results];
        text.value = results.map((result) => result[0].transcript).join(" ").trim();
        if (results.at(-1).isFinal && text.value) speak(text.value);
      });
      heard.addEventListener("error", (event) => {
        if (event.error !== "aborted") complain(WHY[event.error] || "Listening failed (" + event.error + ").");
      });
      heard.addEventListener("end", stop);
      listening = heard;
      button.setAttribute("aria-pressed", "true");
      try {
        heard.start();
      } catch (error) {
        stop();
        complain("Listening failed (" + error.name + ").");
      }
    }

    button.addEventListener("click", () => (listening ? listening.stop() : listen()));
  }

  return { start };
})();
