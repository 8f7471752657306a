// The search bar of a Docusaurus site: copy this file to src/theme/SearchBar.js. It loads find/search.js of the site.

import { createElement, useEffect, useState } from "react";
import { matchPath, useHistory } from "@docusaurus/router";
import useDocusaurusContext from "@docusaurus/useDocusaurusContext";
import useGlobalData from "@docusaurus/useGlobalData";
import routes from "@generated/routes";

const ATTRIBUTES = { keys: "ctrl+k /" };
const MISSING = "no index here yet";

// Return whether Docusaurus has a page at a path. Other files of the site, and its other languages, are no pages to it.
function isPage(path, routes) {
  return routes.some(
    ({ path: route, exact, routes: inner = [] }) =>
      matchPath(path, { path: route, exact }) && (exact || isPage(path, inner)),
  );
}

// Return the path that the default language of the site begins at. All languages share one index.
function useRoot() {
  const { siteConfig, i18n } = useDocusaurusContext();
  if (i18n.currentLocale === i18n.defaultLocale) return siteConfig.baseUrl;
  return siteConfig.baseUrl.replace(`/${i18n.localeConfigs[i18n.currentLocale].path}/`, "/");
}

// Return the labels of the versions by their names, such as {"current": "5.x"}. Of several plugins, the main one decides.
function useVersions() {
  const { default: main, ...others } = useGlobalData()["docusaurus-plugin-content-docs"] ?? {};
  const versions = [...Object.values(others), ...(main ? [main] : [])].flatMap((docs) => docs.versions);
  return Object.fromEntries(versions.map(({ name, label }) => [name, label]));
}

export default function SearchBar() {
  const history = useHistory();
  const versions = JSON.stringify(useVersions());
  const script = `${useRoot()}find/search.js`;
  const [isMissing, setMissing] = useState(false);

  useEffect(() => {
    const element = document.createElement("script");
    // `npm start` answers with a page of HTML, which is an error too, if the file is missing
    Object.assign(element, { type: "module", src: script, onerror: () => setMissing(true) });
    document.head.append(element);
    return () => element.remove();
  }, [script]);

  // Open a result without loading a page. With Ctrl or ⌘ the browser opens it in a tab, and with Shift in a window.
  function open(event) {
    const link = event.nativeEvent.composedPath().find(({ href }) => href);
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const { origin, pathname, search, hash } = new URL(link.href);
    if (origin !== location.origin || !isPage(pathname, routes)) return;
    event.preventDefault();
    history.push(pathname + search + hash);
  }

  if (isMissing) return createElement("button", { disabled: true, title: script }, MISSING);
  return createElement("semantic-search", { ...ATTRIBUTES, versions, onClick: open });
}
