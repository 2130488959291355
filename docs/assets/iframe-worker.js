// Search from a disk: browsers start no worker for a page that came from a file, so its script runs
// in a hidden frame instead. The theme would fetch such a stand-in from elsewhere; this one is ours.
"use strict";

window.IFrameWorker = class extends EventTarget {
  constructor(source) {
    super();
    this.onmessage = null;
    const frame = document.createElement("iframe");
    frame.hidden = true;
    this.ready = new Promise((loaded) => {
      const start = () => {
        const inside = frame.contentWindow;
        inside.postMessage = (data) => this.receive(data);
        const script = frame.contentDocument.createElement("script");
        script.onload = () => loaded(inside);
        script.src = source;
        frame.contentDocument.body.append(script);
      };
      frame.addEventListener("load", start, { once: true }); // its page may be replaced until then
    });
    document.body.append(frame);
    this.terminate = () => frame.remove();
  }

  receive(data) {
    const event = new MessageEvent("message", { data });
    if (this.onmessage) this.onmessage(event);
    this.dispatchEvent(event);
  }

  postMessage(data) {
    this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
  }
};

if (location.protocol === "file:") window.Worker = window.IFrameWorker;
