// The version and the language of the page that the box stands on. The box searches these alone, unless told otherwise.

/** @typedef {Record<string, string>} Scope the page's version and language, by the names of the columns */

/** @type {Record<string, string>} the elements that semsearch/indexing/documents/pages.py reads for these columns */
const STATED = {
  version: "meta[name='docsearch:version' i][content], meta[name=docusaurus_version i][content]",
  language: "meta[name='docsearch:language' i][content], meta[name=docusaurus_locale i][content]",
};

/** Return the language of the page; XHTML 1.1 has the attribute xml:lang alone. @type {() => string} */
const pageLanguage = () => document.documentElement.lang || document.documentElement.getAttribute("xml:lang") || "";

/**
 * Return what the page states, such as {version: "1.0", language: "en"}: only columns of which the corpus has several
 * values, one of them the page's. `values` has the values of these columns.
 * @type {(values: Record<string, string[]>) => Scope}
 */
export function scopeOf(values) {
  const stated = (/** @type {string} */ name) =>
    /** @type {HTMLMetaElement | null} */ (document.querySelector(STATED[name]))?.content;
  const page = { version: stated("version"), language: stated("language") || pageLanguage() };
  const found = Object.entries(page).flatMap(([name, value]) => {
    return value && values[name]?.length > 1 && values[name].includes(value) ? [[name, value]] : [];
  });
  return Object.fromEntries(found);
}

/** Return the filters of a scope. Pages that state no version or language pass too. @type {(scope: Scope) => object[]} */
export const scopeFilters = (scope) =>
  Object.entries(scope).map(([name, value]) => ({ $or: [{ [name]: value }, { [name]: { $exists: false } }] }));

/** Return a scope in words, such as "version 1.0, English". @type {(scope: Scope, label: string, locale: string) => string} */
export function describeScope({ version, language }, label, locale) {
  const names = version === undefined ? [] : [label.replace("{}", version)];
  if (language !== undefined) {
    names.push(nameOf(language, locale));
  }
  return names.join(", ");
}

/** Return what a locale calls a language of the corpus, such as de_AT; the language itself if it is no code. @type {(language: string, locale: string) => string} */
function nameOf(language, locale) {
  try {
    return new Intl.DisplayNames([locale], { type: "language" }).of(language.replaceAll("_", "-")) ?? language;
  } catch {
    return language; // such as "German"
  }
}
