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
  // what the button says; the folder texts/ has the others, which are loaded with the box
  de: { search: "Suchen" },
  es: { search: "Buscar" },
  fr: { search: "Rechercher" },
  it: { search: "Cerca" },
  ja: { search: "検索" },
  nl: { search: "Zoeken" },
  pt: { search: "Pesquisar" },
  ru: { search: "Поиск" },
  zh: { search: "搜索" },
};

/** @type {Record<string, Record<string, string> | null>} the texts in texts/ by language, null before they are loaded */
const translations = Object.fromEntries(Object.keys(texts).map((language) => [language, null]));

/**
 * Return the locale that a page or a column calls so, such as de-AT for de_AT, which `Intl` refuses; English for no locale.
 * @type {(name: string) => string}
 */
export function localeOf(name) {
  try {
    return Intl.getCanonicalLocales(name.replaceAll("_", "-"))[0];
  } catch {
    return "en";
  }
}

/** @type {(locale: string) => string} */
const languageOf = (locale) => localeOf(locale).split("-")[0];

/** Return the texts for a locale: English for those that nobody has translated. @type {(locale: string) => Record<string, string>} */
export function textsFor(locale) {
  const language = languageOf(locale);
  return { ...texts.en, ...translations[language], ...texts[language], locale: localeOf(locale) };
}

/** Load the texts of the language of a locale, if there are any, with a function that imports a module of the code.
 * @type {(locale: string, load: (name: string) => Promise<{ default: Record<string, string> }>) => Promise<void>} */
export async function loadTexts(locale, load) {
  const language = languageOf(locale);
  if (language === "en" || translations[language] !== null) return;
  try {
    translations[language] = (await load(`texts/${language}.js`)).default;
  } catch {
    // the box is in English, until the next call tries again
  }
}

/** Replace each {} in a text with the next value. @type {(text: string, ...values: unknown[]) => string} */
export const fill = (text, ...values) => text.replace(/\{\}/g, () => String(values.shift()));

/** Return a size in megabytes with one decimal, as a locale writes it: 3,4 in German. @type {(bytes: number, locale: string) => string} */
export function megabytes(bytes, locale) {
  return new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(bytes / 1e6);
}
