// The texts of the box by language. A page can change them: import { texts } from "/find/search.js".

/** @type {Record<string, Record<string, string>>} */
export const texts = {
  en: {
    search: "Search",
    clear: "Clear",
    close: "Close",
    results: "Results",
    found: "Results: {}",
    nothing: "Nothing was found for “{}”.",
    advice: "Try other words, fewer words, or a whole question.",
    unlike: "Nothing on these pages is much like “{}”.",
    closest: "The closest results:",
    corrected: "Results for “{}” instead of “{}”.",
    literally: "Search for “{}”",
    without: "without “{}”",
    more: "More on this page",
    also: "also in {}",
    scope: "Only {}",
    all: "Search all versions and languages",
    version: "version {}",
    recent: "Recent searches",
    forget: "Forget “{}”",
    pages: "Start here",
    move: "move",
    open: "open",
    page: "page",
    loading: "Loading the search by meaning: {} of {} MB",
    load: "Search by meaning too ({} of {} MB loaded)",
  },
  de: {
    search: "Suchen",
    clear: "Leeren",
    close: "Schließen",
    results: "Treffer",
    found: "Treffer: {}",
    nothing: "Zu „{}“ wurde nichts gefunden.",
    advice: "Andere oder weniger Wörter helfen, oder eine ganze Frage.",
    unlike: "Nichts auf diesen Seiten passt gut zu „{}“.",
    closest: "Die ähnlichsten Treffer:",
    corrected: "Treffer für „{}“ statt „{}“.",
    literally: "Nach „{}“ suchen",
    without: "ohne „{}“",
    more: "Mehr auf dieser Seite",
    also: "auch in {}",
    scope: "Nur {}",
    all: "In allen Versionen und Sprachen suchen",
    version: "Version {}",
    recent: "Letzte Suchen",
    forget: "„{}“ vergessen",
    pages: "Hier anfangen",
    move: "wählen",
    open: "öffnen",
    page: "Seite",
    loading: "Die Suche nach Bedeutung wird geladen: {} von {} MB",
    load: "Auch nach Bedeutung suchen ({} von {} MB geladen)",
  },
};

/** Replace each {} in a text with the next value. @type {(text: string, ...values: unknown[]) => string} */
export const fill = (text, ...values) => text.replace(/\{\}/g, () => String(values.shift()));

/** @type {(bytes: number) => string} */
export const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
