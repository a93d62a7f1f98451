// Elements from values. Text from a host becomes text here and never markup: the page has no other
// way to make an element, and the content security policy refuses every attempt to parse HTML from
// a string.

// hidden are characters that a browser obeys or ignores instead of showing them, by their properties
// in Unicode, without those that languages and emoji need: the rule of package visible.
const hidden = new RegExp("(?![\\t\\n\\u200c\\u200d\\ufe00-\\ufe0f\\u180b-\\u180d\\u180f" +
  "\\u0600-\\u0605\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u{110bd}\\u{110cd}])" +
  "[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]", "gu");

// visible replaces them, because they could make one host name look like another.
export function visible(text) {
  return String(text).replace(hidden, "\ufffd");
}

const drawn = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : visible(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
}

// h makes an HTML element: h("a", {href: "#/"}, "text", otherElement). Attributes that begin with
// "on" are listeners.
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// svg does the same for SVG elements.
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(drawn, tag), attributes, children);
}

// prose returns a text whose parts between backquotes are commands, files or settings.
export const prose = (text) => String(text).split("`").map((part, i, all) => (i % 2 === 1 && i < all.length - 1 ? h("code", {}, part) : part));

// put replaces the children of an element.
export function put(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

// once leaves an element alone while its content is unchanged, so that focus, scroll position and
// screen readers stay where they are.
export function once(element, key, make) {
  const now = JSON.stringify(key);
  if (element.dataset.shown === now) return;
  element.dataset.shown = now;
  put(element, make());
}

// colour returns a colour of the style sheet for drawing on a canvas: the sheet is the only place
// with colours.
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// copyButton copies a text. Browsers offer no clipboard without a secure connection; it then
// selects the text for the copy keys.
export function copyButton(text, shown) {
  const button = h("button", { type: "button", class: "no-print", title: "Copy to the clipboard" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(shown);
      button.textContent = "Selected";
    }
  });
  return button;
}

// command shows a shell command with a button that copies it.
export function command(text) {
  const shown = h("code", { class: "command-text" }, text);
  return h("div", { class: "command" }, shown, copyButton(text, shown));
}
