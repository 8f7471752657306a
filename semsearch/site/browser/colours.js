// The colours and the font of the page around the box. A theme can change them while the page is open.

const SAMPLED = "main a[href], article a[href], a[href]"; // a link in the text has the colour of the site

/** Set the custom properties of the dialog to what the page has now. @type {(dialog: HTMLDialogElement) => void} */
export function adoptPage(dialog) {
  const text = document.querySelector("main, article") ?? document.body;
  const paper = backgroundOf(text);
  const { color, fontFamily } = getComputedStyle(text);
  const link = document.querySelector(SAMPLED);
  const own = { paper, ink: color, font: fontFamily, link: link && getComputedStyle(link).color };
  for (const [name, value] of Object.entries(own)) if (value) dialog.style.setProperty(`--page-${name}`, value);
  // a page without a background has that of its color-scheme, which the dialog inherits
  dialog.style.colorScheme = paper && (isDark(paper) ? "dark" : "light");
}

/**
 * Return the background of an element: its own, or that of the nearest element around it that has one, "" if none has.
 * @type {(element: Element | null) => string}
 */
function backgroundOf(element) {
  if (!element) return "";
  const { backgroundColor } = getComputedStyle(element);
  const isClear = /^transparent$|[,/] 0\)$/.test(backgroundColor);
  return isClear ? backgroundOf(element.parentElement) : backgroundColor;
}

/** Return whether a computed colour is darker than the middle between black and white. @type {(color: string) => boolean} */
function isDark(color) {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  if (!canvas) return false;
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}
