// What server.js uses of the page's other scripts, which semsearch/app/page/ has.

declare function byId(id: string): HTMLElement;
declare function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes?: object,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag];
declare function search(): Promise<void>;
declare function chosenMode(): string;
declare const corpus: { keywords: object | null };
declare const query: HTMLInputElement;
declare var trustedTypes: { createPolicy(name: string, rules: { createScriptURL(address: string): string }): any };
