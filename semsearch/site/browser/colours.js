// The colours and the font of the page around the box. A theme can change them while the page is open.

const IN_TEXT = "main a[href], article a[href]"; // a link in the text has the colour of the site
const SHARES = [72, 80, 90, 100]; // percent of the text's colour in softer text
const READABLE = 6; // contrast of softer text on the paper, of which a selected card leaves the 4.5 that WCAG 2 asks for

/** Set the custom properties of the dialog to what the page has now. @type {(dialog: HTMLDialogElement) => void} */
export function adoptPage(dialog) {
  const text = document.querySelector("main, article") ?? document.body;
  const paper = backgroundOf(text);
  const { color, fontFamily } = getComputedStyle(text);
  const link = document.querySelector(IN_TEXT) ?? document.querySelector("a[href]");
  const own = { paper, ink: color, font: fontFamily, link: link && getComputedStyle(link).color };
  for (const [name, value] of Object.entries(own)) if (value) dialog.style.setProperty(`--page-${name}`, value);
  // a page without a background has that of its color-scheme, which the dialog inherits
  dialog.style.colorScheme = paper && (isDark(paper) ? "dark" : "light");
  const { backgroundColor, color: ink } = getComputedStyle(dialog);
  const share = SHARES.find((percent) => contrastOf(backgroundColor, ink, percent) >= READABLE) ?? 100;
  dialog.style.setProperty("--page-soft", `${share}%`);
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
  const [red, green, blue] = pixelOf(color);
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}

/**
 * Return the contrast, from 1 to 21, of a share of the ink on the paper, as WCAG 2 defines it.
 * @type {(paper: string, ink: string, percent: number) => number}
 */
function contrastOf(paper, ink, percent) {
  const [low, high] = [pixelOf(paper), pixelOf(paper, ink, percent)].map(luminanceOf).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** Return the relative luminance of red, green and blue, as WCAG 2 defines it. @type {(pixel: number[]) => number} */
function luminanceOf(pixel) {
  const [red, green, blue] = pixel.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * Return red, green and blue, from 0 to 255, of a paper with a share of an ink on it. Without a canvas it is white.
 * @type {(paper: string, ink?: string, percent?: number) => number[]}
 */
function pixelOf(paper, ink = paper, percent = 100) {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  if (!canvas) return [255, 255, 255];
  canvas.fillStyle = paper;
  canvas.fillRect(0, 0, 1, 1);
  canvas.globalAlpha = percent / 100;
  canvas.fillStyle = ink;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}
