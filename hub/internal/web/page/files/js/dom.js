// Elements out of values. Whatever comes from a host becomes text here and nowhere markup: there is no other way on this page to make an element, and the
// content security policy refuses every attempt to read HTML from a string.

// visible replaces what turns the direction of text or cannot be seen: in the name of a host it would make one name look like another.
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

// h makes an element of HTML: h("a", {href: "#/"}, "text", otherElement). Attributes that begin with "on" are listeners.
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// svg is the same for drawings.
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(drawn, tag), attributes, children);
}

// put replaces all that is in an element.
export function put(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

// once keeps an element as it is when what it says has not changed, so that a reader's place and a screen reader's attention stay where they are.
export function once(element, key, make) {
  const now = JSON.stringify(key);
  if (element.dataset.told === now) return;
  element.dataset.told = now;
  put(element, make());
}

// colour is one of the style sheet, for what is drawn on a canvas: the sheet is the one place where colours are.
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// copyButton copies a text. Without a secure connection browsers give no clipboard; then the text is selected, ready for the keys that copy.
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

// command shows what is to be typed in a shell, with a button that copies it.
export function command(text) {
  const shown = h("code", { class: "command-text" }, text);
  return h("div", { class: "command" }, shown, copyButton(text, shown));
}
