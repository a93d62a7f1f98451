// Elements from values. Text from a host becomes text here and never markup: the page has no other
// way to make an element, and the content security policy refuses every attempt to parse HTML from
// a string.

// visible replaces characters that change the direction of text or are invisible, because they
// could make one host name look like another.
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "\ufffd");
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
