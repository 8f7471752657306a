// The stemmers of the languages of the corpus, which `semsearch site` adds.

export const stemmers: (import("./types.js").Stem | null)[];
