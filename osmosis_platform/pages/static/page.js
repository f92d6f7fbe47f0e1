// What a page does beyond being read: it follows changes, and copies a token. Pages work without it.

const KEPT_LINES = 2000;

/** Replace the content of an element, where it is another one than before. */
function fill(id, html) {
  const element = document.getElementById(id);
  if (!element) return;
  const made = document.createElement("template");
  made.innerHTML = html;
  if (made.innerHTML.trim() === element.innerHTML.trim()) return;
  const focused = element.contains(document.activeElement);
  element.replaceChildren(made.content);
  if (focused) document.getElementById("main").focus();
}

/** Add lines to a log, and stay at its end where the reader is there. */
function append(log, html) {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  log.insertAdjacentHTML("beforeend", html);
  while (log.childElementCount > KEPT_LINES) log.firstElementChild.remove();
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

class Follower {
  constructor(root) {
    this.url = root.dataset.live;
    this.after = root.dataset.after ?? "";
    this.state = root.querySelector("[data-live-state]");
    this.log = root.querySelector("[data-log]");
    this.isOver = false;
    document.addEventListener("visibilitychange", () => this.turn());
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", () => this.turn());
    this.turn();
  }

  /** Connect while the page is seen; a hidden one costs the platform nothing. */
  turn() {
    if (document.hidden || this.isOver) this.close();
    else if (!this.source) this.open();
  }

  open() {
    const joint = this.url.includes("?") ? "&" : "?";
    this.source = new EventSource(`${this.url}${joint}after=${this.after}`);
    this.source.onopen = () => this.tell("live", true);
    this.source.onerror = () => this.failed();
    this.source.addEventListener("part", (event) => {
      const part = JSON.parse(event.data);
      if (part.id === "runs" && !document.getElementById("runs")) {
        if (part.html.includes("<table")) location.reload();
        return;
      }
      fill(part.id, part.html);
    });
    this.source.addEventListener("log", (event) => {
      this.after = event.lastEventId;
      if (this.log) append(this.log, JSON.parse(event.data).html);
    });
    this.source.addEventListener("end", () => this.end(""));
    this.source.addEventListener("gone", () => this.end("no longer live: reload the page"));
  }

  failed() {
    this.tell("reconnecting…", false);
    if (this.source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    this.close();
    setTimeout(() => this.turn(), 30_000);
  }

  end(words) {
    this.isOver = true;
    this.close();
    this.tell(words, false);
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  tell(words, isOn) {
    if (!this.state) return;
    this.state.hidden = !words;
    this.state.textContent = words;
    this.state.classList.toggle("on", isOn);
  }
}

for (const root of document.querySelectorAll("[data-live]")) new Follower(root);

for (const log of document.querySelectorAll("[data-log]")) log.scrollTop = log.scrollHeight;

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
  });
}

// A menu closes on Escape, and when the focus leaves it.
for (const menu of document.querySelectorAll("details.menu")) {
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
}
