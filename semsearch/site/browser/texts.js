// The texts of the box by language. A page can change them: import { texts } from "/find/search.js".

/** @type {Record<string, Record<string, string>>} */
export const texts = {
  en: {
    search: "Search",
    close: "Close",
    help: "↑ and ↓ choose a result, Enter opens it.",
    results: "Results",
    found: "Results: {}",
    nothing: "Nothing found.",
    page: "page",
    loading: "Loading the search by meaning: {} of {} MB",
    load: "Search by meaning too ({} of {} MB loaded)",
  },
  de: {
    search: "Suchen",
    close: "Schließen",
    help: "↑ und ↓ wählen einen Treffer, Enter öffnet ihn.",
    results: "Treffer",
    found: "Treffer: {}",
    nothing: "Nichts gefunden.",
    page: "Seite",
    loading: "Die Suche nach Bedeutung wird geladen: {} von {} MB",
    load: "Auch nach Bedeutung suchen ({} von {} MB geladen)",
  },
};

/** Replace each {} in a text with the next value. @type {(text: string, ...values: unknown[]) => string} */
export const fill = (text, ...values) => text.replace(/\{\}/g, () => String(values.shift()));

/** @type {(bytes: number) => string} */
export const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
