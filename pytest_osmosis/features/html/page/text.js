// Elements and text. Text of models goes in as text nodes alone, with what is invisible spelled out.

const UNSEEN =
  /(?![\n\t])[\p{Cc}\p{Cs}\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Text in which control characters, and those that turn its direction, can be seen. */
export function visible(text) {
  return String(text).replace(UNSEEN, (char) => {
    if (char === "\r") return "\\r";
    const code = char.codePointAt(0).toString(16);
    if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
    return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
}

/** An element with a class and children; strings become text. */
export function el(name, classes, ...children) {
  const element = document.createElement(name);
  if (classes) element.className = classes;
  element.append(
    ...children
      .filter((child) => child !== null && child !== undefined && child !== "")
      .map((child) => (child instanceof Node ? child : visible(child))),
  );
  return element;
}

/** A button that does something. */
export function button(text, title, act) {
  const found = el("button", "", text);
  found.type = "button";
  found.title = visible(title);
  found.setAttribute("aria-label", found.title);
  found.addEventListener("click", act);
  return found;
}

/** A button that copies text, which `give` makes when it is wanted. */
export function copyButton(title, give) {
  const found = button("Copy", title, async () => {
    found.textContent = (await copied(give())) ? "Copied" : "No clipboard";
    setTimeout(() => (found.textContent = "Copy"), 1500);
  });
  found.classList.add("copy");
  return found;
}

export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", "away");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

const LONG = 20_000;

/** A block of text; a very long one is cut until it is asked for. */
export function block(text, classes = "text") {
  const found = el("div", classes);
  found.dir = "auto";
  if (text.length <= LONG) {
    found.append(visible(text));
    return found;
  }
  const rest = button(
    `Show all ${text.length.toLocaleString("en")} characters`,
    "Show the whole text",
    () => found.replaceChildren(visible(text)),
  );
  found.append(visible(text.slice(0, LONG / 2)), " … ", rest);
  return found;
}

/** One line of a text, cut where a table has no room for more. */
export function line(text, limit = 240) {
  const short = text.length > 4 * limit ? text.slice(0, 4 * limit) : text;
  const flat = short.replace(/\s+/g, " ").trim();
  return flat.length > limit ? `${flat.slice(0, limit)}…` : flat;
}

export function number(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(4)).toString();
}

/** All digits, but for what rounding on the way has left. */
export function exact(value) {
  return value === undefined ? "–" : Number(value.toPrecision(15)).toString();
}

export function seconds(ms) {
  return ms >= 100_000 ? `${Math.round(ms / 1000)} s` : `${(ms / 1000).toFixed(2)} s`;
}
