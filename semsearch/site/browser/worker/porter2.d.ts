// The stemmer, which `export site` adds.

export const stem: import("./types.js").Stem;
