// What a page does beyond being read: it follows changes, and copies a token. Pages work without it.
import { compared } from "./diff.js";

const KEPT_LINES = 2000;
const EVERY_S = 2;
/** What the platform has sent of each part of the page, by its id. */
const sent = new Map();
const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];
const AGO = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });

/** Show the times of a table as how long ago they were; the exact ones stay as titles. */
function tellTimes(root) {
  for (const time of root.querySelectorAll("td > time")) {
    const seconds = (Date.now() - new Date(time.dateTime)) / 1000;
    if (seconds < 0) continue;
    time.title ||= time.textContent;
    const unit = UNITS.find(([, length]) => seconds >= length);
    time.textContent = unit ? AGO.format(-Math.floor(seconds / unit[1]), unit[0]) : "just now";
  }
}

/** Replace the content of an element, where what the platform sends of it is other than before. */
function fill(part) {
  const element = document.getElementById(part.id);
  if (!element || sent.get(part.id) === part.innerHTML) return;
  sent.set(part.id, part.innerHTML);
  const focused = element.contains(document.activeElement);
  const ticked = new Set([...element.querySelectorAll("input:checked")].map((each) => each.value));
  for (const each of part.querySelectorAll("input[type=checkbox]"))
    each.checked = ticked.has(each.value);
  element.replaceChildren(...part.childNodes);
  tellTimes(element);
  if (focused) document.getElementById("main").focus();
}

/** Add the lines that a log does not have, by step, and stay at its end where the reader is there. */
function append(log, found) {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  const isThere = (line) => document.getElementById(line.id);
  if (![...found.querySelectorAll("p")].some(isThere)) log.replaceChildren();
  for (const step of found.querySelectorAll("details")) {
    const lines = [...step.querySelectorAll("p")].filter((line) => !isThere(line));
    if (!lines.length) continue;
    const last = log.lastElementChild;
    for (const line of step.querySelectorAll("p")) if (!lines.includes(line)) line.remove();
    if (last?.dataset.step === step.dataset.step) last.append(...lines);
    else log.append(step);
    if (last) tellStep(last, last === log.lastElementChild ? null : step);
  }
  const all = log.getElementsByTagName("p");
  while (all.length > KEPT_LINES) all[0].remove();
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

/** Say how many lines a step has, and how long it took where the next one has begun: it folds. */
function tellStep(step, next) {
  const count = step.querySelectorAll("p").length;
  const words = [count === 1 ? "1 line" : `${count} lines`];
  if (next) {
    const [from, to] = [step, next].map((each) => new Date(each.querySelector("time").dateTime));
    words.push(durationOf((to - from) / 1000));
    step.open = step.querySelector(".error, .warning") !== null;
  }
  step.querySelector("summary small").textContent = words.join(", ");
}

/** A length of time in its two largest units, as the page has it. */
function durationOf(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** Let the times of a run that continues run on. */
setInterval(() => {
  for (const each of document.querySelectorAll("[data-counts]")) {
    each.seenAt ??= Date.now();
    const passed = (Date.now() - each.seenAt) / 1000;
    each.textContent = durationOf(Number(each.dataset.counts) + each.dataset.by * passed);
  }
}, 1000);

/** Asks for the page again and again while it is seen, and shows what has changed. */
class Follower {
  constructor(root) {
    this.url = root.dataset.live;
    this.everyS = root.dataset.every ?? EVERY_S;
    this.state = document.querySelector("[data-live-state]");
    this.log = root.querySelector("[data-log]");
    this.isOver = false;
    for (const part of root.querySelectorAll("[data-part]")) sent.set(part.id, part.innerHTML);
    document.addEventListener("visibilitychange", () => this.turn());
    addEventListener("pagehide", () => clearTimeout(this.timer));
    addEventListener("pageshow", () => this.turn());
  }

  /** Look now where the page is seen; a hidden one costs the platform nothing. */
  turn() {
    clearTimeout(this.timer);
    if (document.hidden || this.isOver) return;
    this.timer = setTimeout(() => this.turn(), 1000 * this.everyS);
    if (!this.isAsking) this.look();
  }

  async look() {
    this.isAsking = true;
    try {
      const answer = await fetch(this.url, { redirect: "manual" });
      if (answer.type === "opaqueredirect" || [403, 404].includes(answer.status))
        this.end("no longer live: reload the page");
      else if (answer.ok)
        this.show(new DOMParser().parseFromString(await answer.text(), "text/html"));
      else throw new Error(answer.status);
    } catch {
      this.tell("reconnecting…", false);
    } finally {
      this.isAsking = false;
    }
  }

  show(page) {
    if (page.getElementById("runs") && !document.getElementById("runs")) location.reload();
    for (const part of page.querySelectorAll("[data-part]")) fill(part);
    const log = page.querySelector("[data-log]");
    if (this.log && log) append(this.log, log);
    const root = page.querySelector("[data-live]");
    if (!root) return this.end("");
    this.everyS = root.dataset.every ?? EVERY_S;
    this.tell("live", true);
  }

  end(words) {
    this.isOver = true;
    clearTimeout(this.timer);
    this.tell(words, false);
  }

  tell(words, isOn) {
    if (!this.state) return;
    this.state.hidden = !words;
    this.state.textContent = words;
    this.state.classList.toggle("on", isOn);
  }
}

for (const root of document.querySelectorAll("[data-live]")) new Follower(root);

tellTimes(document);

/** Mark where two answers differ. */
for (const pair of document.querySelectorAll(".pair")) {
  const answers = [...pair.querySelectorAll("[data-answer]")];
  if (answers.length !== 2) continue;
  const marked = compared(...answers.map((each) => each.textContent));
  for (const [at, nodes] of marked.entries()) answers[at].replaceChildren(...nodes);
}

for (const form of document.querySelectorAll("[data-submits]"))
  form.addEventListener("change", () => form.requestSubmit());

/** Two that are ticked can be sent, no other number. */
for (const form of document.querySelectorAll("[data-two]")) {
  const button = form.querySelector("button");
  const count = () => {
    const ticked = [...form.elements].filter((each) => each.name === form.dataset.two && each.checked);
    button.disabled = ticked.length !== 2;
    button.textContent = ticked.length ? `Compare two (${ticked.length} ticked)` : "Compare two";
  };
  document.addEventListener("change", count);
  count();
}

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
